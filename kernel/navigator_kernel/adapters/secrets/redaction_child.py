"""Finds the secrets of long texts in a child process."""

from __future__ import annotations

import json
import marshal
import sys

from navigator_kernel.adapters.secrets.redaction import search


def main() -> None:
    texts: list[str] = marshal.load(sys.stdin.buffer)["texts"]  # noqa: S302 - the parent process wrote it
    json.dump({"found": [search(text) for text in texts]}, sys.stdout)


if __name__ == "__main__":
    main()
