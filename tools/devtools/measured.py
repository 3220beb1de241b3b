"""Run by every Python of .venv while `./dev coverage` lasts: measures this process, in silence where it cannot."""

import atexit
import os

# ruff: noqa: F821 — MEASURING is set by the line in .venv that runs this
_pid, _root, _folder, _unfinished = MEASURING  # type: ignore[name-defined]


def _measure() -> None:
    if "DARI_UNMEASURED" in os.environ:
        return  # a test that counts what a command imports
    try:
        os.kill(_pid, 0)
    except ProcessLookupError:
        return  # that run was killed and could not clean up
    except OSError:
        pass
    try:
        from coverage import Coverage
    except ImportError:
        return
    coverage = Coverage(config_file=f"{_root}/pyproject.toml", data_file=f"{_unfinished}/data", data_suffix=True)
    coverage.start()

    def save() -> None:
        coverage.stop()
        try:
            coverage.save()
            data = coverage.get_data()
            data.close(force=True)
            os.rename(data.data_filename(), f"{_folder}/{os.path.basename(data.data_filename())}")
        except Exception:  # a process that is confined, or another user's, cannot write there
            pass

    atexit.register(save)


_measure()
