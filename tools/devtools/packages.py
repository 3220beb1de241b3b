"""Sources of other people's Python packages, with their test suites, in `.dev/packages`: renames are tried on them."""

import shutil
import tarfile
import time

from devtools import environment
from devtools.workspace import DEV, VENV_PYTHON, SetupError, attempt, digest, is_stamped, one_at_a_time, say

FOLDER = DEV / "packages"
PACKAGES = ("cachetools==8.0.0", "click==8.5.1", "h11==0.16.0", "tomlkit==0.15.2", "toolz==1.2.0")


def ensure() -> dict[str, str]:
    """The environment that tells tests where they are; SetupError when one could not be fetched."""
    stamp, value = FOLDER / ".dev-stamp", digest(*PACKAGES)
    if not is_stamped(stamp, value):
        with one_at_a_time():
            if not is_stamped(stamp, value):
                _fetch()
                stamp.write_text(value)
    return {"DARI_PACKAGES_DIR": str(FOLDER)}


def _fetch() -> None:
    started = time.monotonic()
    say(f"fetching the sources of {', '.join(PACKAGES)} into .dev/packages")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    pip = environment.find_pip(VENV_PYTHON)
    if not pip:
        raise SetupError("there is no pip to fetch sources with\nhint: install pip (Debian: python3-pip)")
    failed = attempt([*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", FOLDER, *PACKAGES])
    if failed is not None:
        raise SetupError(f"pip could not fetch sources:\n{failed}\nhint: is a package index reachable from here?")
    for archive in FOLDER.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
            opened.extractall(FOLDER)
        archive.unlink()
    say(f"fetched sources in {time.monotonic() - started:.1f} s")
