"""The skills of this project as a site publishes them: an index with digests, archives and manifests (the discovery RFC
0.2.0), for `navigator install URL` and other clients."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from navigator_kernel.bootstrap.lifecycle import lifecycle_of
from navigator_kernel.errors import NotFound
from navigator_kernel.gateway.api.files import BINARY
from navigator_kernel.skills.install.export import INDEX, served_site
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

KEPT = 10.0  # seconds for which a site is not made again
SITE_LIMIT = 64 * 1024 * 1024  # bytes of all skills, which stay in memory
_HEADERS: Mapping[str, str] = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}


async def read_skill_index(gateway: Gateway, _call: Call) -> Answer:
    """Lists the skills of this project that are switched on and that you installed or trust as they are now, and those
    of this release, each with the SHA-256 of its document."""
    documents = await _documents(gateway)
    return Answer(value=json.loads(documents["index.json"]), headers={"cache-control": "no-cache"})


async def read_published_skill(gateway: Gateway, call: Call) -> Response:
    """Sends a document of the index. One of a skill that is not published any more is open for 10 seconds at most."""
    if (data := (await _documents(gateway)).get(call.path["file"])) is None:
        raise NotFound("no skill is published at this address", hint=f"/{INDEX}/index.json names those that are")
    return Response(data, headers=_HEADERS, media_type=BINARY)


async def _documents(gateway: Gateway) -> Mapping[str, bytes]:
    """The files of the site, by path; they are made again after `KEPT` seconds, by one request at a time."""

    def site() -> Mapping[str, bytes]:
        catalogue = gateway.project.catalogue
        rows, _ = lifecycle_of(gateway.project).found(InstallOptions())
        own = [one for one in rows if one.skill.enabled and one.skill.level in {"project", "shipped"}]
        unknown = {one.skill.name for one in own if catalogue.standing(one.skill) == "unknown"}
        documents, left_out = served_site((one for one in own if one.skill.name not in unknown), SITE_LIMIT)
        changed = (one.skill.name for one in own if one.receipt and one.skill.name in unknown)
        left_out |= dict.fromkeys(changed, "it is not as you installed it")
        for name, why in left_out.items():
            logging.getLogger("navigator").warning("the skill %s is not published: %s", name, why)
        return documents

    async with gateway.site_guard:
        if gateway.site is None or time.monotonic() - gateway.site[0] > KEPT:
            documents = await asyncio.to_thread(site)
            gateway.site = time.monotonic(), documents
        return gateway.site[1]


_get: Any = partial(Endpoint, "GET", role="read", tag="skills")

ENDPOINTS = (
    _get(f"/{INDEX}/index.json", "List the skills that this server publishes", read_skill_index, answer=dict),
    _get(f"/{INDEX}/{{file:path}}", "Download a published skill", read_published_skill, media=BINARY, errors=(404,)),
)
