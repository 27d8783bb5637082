"""A local web server, and a skill that may fetch from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.fetched import PAGE, Fetched, project
from web_server import KEY_AND_CERTIFICATE, Pages, Reply, pages


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    pem = tmp_path / "tls.pem"
    pem.write_text(KEY_AND_CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    with pages(pem) as held:
        held.replies["/boats"] = Reply(PAGE)
        yield held


@pytest.fixture
def fetched(tmp_path: Path, there: Pages) -> Fetched:
    return Fetched(project(tmp_path), f"localhost:{there.port}")
