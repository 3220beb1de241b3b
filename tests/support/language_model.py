"""A real small language model behind llama.cpp's server, as `./dev test` installs it."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import missing

ROOT = Path(__file__).parents[2]
_START_S = 80
_SERVE = """
import sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel, params.n_batch, params.warmup = 2048, 1, 256, False
params.cpuparams.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving_language_model() -> Iterator[str]:
    """The base address of the server, `http://127.0.0.1:port/v1`."""
    if os.environ.get("DARI_NO_LLM") == "1":
        missing("A REAL LANGUAGE MODEL WAS NOT TESTED: it could not be installed")
    folder = Path(os.environ.get("DARI_LLM_DIR") or ROOT / ".dev" / "llm")
    model, python = folder / "model.gguf", folder / "venv" / "bin" / "python"
    if not model.exists() or not python.exists():
        missing(f"A REAL LANGUAGE MODEL WAS NOT TESTED: `./dev test` could not install it into {folder}")
    words = [str(python), "-c", _SERVE, str(model)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdin is not None and child.stdout is not None
    try:
        ready, _, _ = select.select([child.stdout], [], [], _START_S)
        address = child.stdout.readline().decode().strip() if ready else ""
        assert address.startswith("http://127.0.0.1:"), f"the model's server did not start: {address!r}"
        yield f"{address}/v1"
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
