"""An ingest on a disk that is full: a small tmpfs in a mount namespace of this process. Run below `unshare -rm`.

Arguments: a folder, and sizes of the disk in kB. For each size: a first note is ingested with room enough, then many on
the small disk, then again with room. Prints a JSON line each: what the ingest said, and whether all is there then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from dari.knowledge.errors import classify
from tests.support.knowledge_folder import (
    check_consistent,
    found_paths,
    make_settings,
    note,
    run,
    unique_word,
    write_old,
)


def main(folder: Path, sizes: list[int]) -> None:
    for size in sizes:
        place = folder / str(size)
        (place / "home").mkdir(parents=True)
        _mount(place / "home", "size=64m")
        settings = make_settings(place, {"KEBAB_INGEST_BATCH_FILES": "5"})
        write_old(place / "notes/a.md", note("first"))
        run(settings)
        for number in range(60):
            write_old(place / f"notes/{number}.md", note(str(number), 12))
        kinds: list[str] = []
        _mount(place / "home", f"remount,size={size}k")
        said = {"code": "", "message": ""}
        try:
            run(settings, listener=lambda event, kinds=kinds: kinds.append(event.kind))
        except Exception as error:
            told = classify(error)
            said = {"code": told.code, "message": told.message}
        is_searched = found_paths(settings, unique_word("first")) == ["a.md"]
        _mount(place / "home", "remount,size=64m")
        errors = run(settings).errors
        documents = check_consistent(settings)
        ends = [kind for kind in kinds if kind in ("aborted", "completed")]
        print(json.dumps(said | {"ends": ends, "searched": is_searched, "errors": errors, "documents": documents}))


def _mount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])
