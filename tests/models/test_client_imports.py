"""The libraries of models are imported once, whichever thread needs them first."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST_USE = """
import asyncio, sys, threading, time
import httpx2
from navigator_kernel.adapters.models import chat_model, providers
from navigator_kernel.bootstrap.models import load_client
from navigator_kernel.config.settings import Models

failed = []
def use():
    try:
        asyncio.run(load_client(Models(default="openai:some-model")))
    except Exception as error:
        failed.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
    time.sleep(0.05)
for thread in threads:
    thread.join()
print(failed, "pydantic_ai.direct" in sys.modules)
"""


@pytest.mark.wide
def test_threads_that_use_a_model_for_the_first_time_at_once_all_get_its_client() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "[] True"
