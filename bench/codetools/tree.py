"""5,000 files of installed packages, with lines planted that nothing else has."""

from pathlib import Path

from bench.errors import BenchError
from bench.machine import ROOT

FILES = 5000
NEEDLE = "needle of the benchmark"
NEEDLE_EVERY = 200
MAX_FILE_BYTES = 1 << 20
_SUFFIXES = (".py", ".pyi", ".h", ".txt", ".md", ".json", ".js", ".c", ".cpp", ".hpp", ".ts", ".toml", ".rst")


def make_tree(folder: Path) -> Path:
    """The first files by name of this project's environment, byte for byte, in their folders."""
    packages = next((ROOT / ".venv" / "lib").glob("python*/site-packages"))
    paths = sorted(path for path in packages.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    chosen = [path for path in paths if path.stat().st_size < MAX_FILE_BYTES][:FILES]
    if len(chosen) < FILES:
        raise BenchError(f"the environment has {len(chosen)} files of text, {FILES} are needed", "run ./dev test first")
    for number, path in enumerate(chosen):
        copy = folder / path.relative_to(packages)
        copy.parent.mkdir(parents=True, exist_ok=True)
        planted = f"\n# {NEEDLE} {number}\n".encode() if number % NEEDLE_EVERY == 0 else b""
        copy.write_bytes(path.read_bytes() + planted)
    return folder
