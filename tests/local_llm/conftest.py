"""A real model on this machine, behind llama.cpp's server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from navigator_kernel.config.settings import ModelProvider, Models


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    python = os.environ.get("LOCAL_LLM") or pytest.fail("say make test-local-llm")
    argv = [str(Path(python).absolute()), str(Path(__file__).with_name("llama_server.py"))]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield f"{process.stdout.readline().strip()}/v1"
        process.stdin.close()


@pytest.fixture
def models(url: str) -> Models:
    return Models(default="here:smollm2", providers={"here": ModelProvider(url)}, retries=0, first=120)
