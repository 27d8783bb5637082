"""Another host: fastmcp's client of the Skills extension, in its own environment. Prints one document."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills.client import SkillsClientExtension


async def main(argv: list[str]) -> None:
    async with Client(StdioTransport(argv[0], argv[1:]), extensions=[SkillsClientExtension()]) as client:
        skills = await client.list_skills()
        checked = 0
        for skill in skills:
            assert (await client.get_skill(skill.uri)) == skill
            for one in skill.resources:
                (held,) = await client.read_resource(one.uri)
                data = held.text.encode()  # shipped files are text
                assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (one.digest, one.size), one.uri
                checked += 1
        routed = (await client.call_tool("route", {"message": "please review this code"})).structured_content
        loaded = (await client.call_tool("load_skill", {"name": routed["entity"]})).structured_content
        ran = (await client.call_tool("run_skill", {"name": "word-count", "args": "one two three"})).structured_content
        names = sorted(skill.frontmatter.name for skill in skills)
        told = {"names": names, "files": checked, "entity": routed["entity"], "text": loaded["text"]}
        print(json.dumps({**told, "state": ran["report"]["state"]}))


asyncio.run(main(sys.argv[1:]))
