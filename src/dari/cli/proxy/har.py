"""`dari proxy har export | import`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dari.cli.kit.console import Output, encode_json
from dari.cli.kit.table import format_size, one_line
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, add_filters, filter_of, group, leaf
from dari.errors import Conflict, Denied, Failed
from dari.os_errors import describe_os_error, suggest_next_step

_EXPORT = """
dari proxy har export                             all of it, to crab-<time>.har in this folder
dari proxy har export login.har --host example.com --since 10m
dari proxy har export full.har --reveal           with secrets: keep such a file to yourself
dari proxy har export - | jq '.log.entries | length'
"""
_IMPORT = """
dari proxy har import session.har                 look at it with `dari proxy traffic`, replay it, mock from it
"""
_PATIENCE_S = 130.0


def add_har(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "har", help, _EXPORT + _IMPORT)
    parser = leaf(words, "export", _export, "write requests to a HAR 1.2 file, secrets hidden", _EXPORT)
    parser.add_argument("file", metavar="FILE", nargs="?", help="- is stdout (default: crab-<time>.har)")
    parser.add_argument("--reveal", action="store_true", help="with secrets")
    parser.add_argument("--overwrite", action="store_true", help="replace the file when it exists")
    parser.add_argument("--no-bodies", action="store_true", help="heads only")
    parser.add_argument("-n", "--limit", metavar="N", type=int, default=10_000, help="the newest N (default: 10000)")
    add_filters(parser)
    parser = leaf(words, "import", _import, "add the requests of a HAR file to the traffic", _IMPORT)
    parser.add_argument("file", metavar="FILE")


async def _export(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    target = None if arguments.file == "-" else Path(arguments.file or time.strftime("crab-%Y%m%d-%H%M%S.har"))
    options: dict[str, Any] = {"limit": arguments.limit, "reveal": arguments.reveal}
    options["include_bodies"] = not arguments.no_bodies
    size_bytes = await export(crab, target, filter_of(arguments), overwrite=arguments.overwrite, **options)
    if target is not None:
        out.show({"path": str(target), "size_bytes": size_bytes}, [f"{format_size(size_bytes)} written to {target}"])
    return 0


async def export(
    crab: Crab,
    target: Path | None,
    wanted: dict[str, Any],
    *,
    overwrite: bool,
    ids: Collection[int] | None = None,
    limit: int = 10_000,
    reveal: bool = False,
    include_bodies: bool = True,
) -> int:
    """Write the flows that fit (and, with `ids`, only those) to a file or stdout; how many bytes it has.

    crabd writes to its own folders only, so that agents have no free hand. A person may put the file anywhere.
    """
    if target is not None and target.exists() and not overwrite:
        raise Conflict(f"{target} exists already", "name another file, or give --overwrite")
    with tempfile.TemporaryDirectory(prefix="dari-har-") as folder:
        draft = Path(folder) / "export.har"
        params: dict[str, Any] = {"path": str(draft), "wanted": wanted, "limit": limit}
        if reveal:
            await crab.call("traffic.reveal_har", _PATIENCE_S, **params)
        else:
            await crab.call("traffic.export_har", _PATIENCE_S, **params, include_bodies=include_bodies)
        if ids is not None:
            _keep_only(draft, ids)
        if target is None:
            sys.stdout.flush()
            with draft.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            _move(draft, target)
            return target.stat().st_size
        return draft.stat().st_size


async def _import(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    path = Path(arguments.file).expanduser().absolute()
    if not path.is_file():
        raise Failed(f"{path} does not exist", "give the path of a HAR file")
    try:
        done = await crab.call("traffic.import_har", _PATIENCE_S, path=str(path))
    except Denied:  # outside of what agents may have read; a person may
        with tempfile.TemporaryDirectory(prefix="dari-har-") as folder:
            copy = Path(folder) / "import.har"
            shutil.copyfile(path, copy)
            done = await crab.call("traffic.import_har", _PATIENCE_S, path=str(copy))
    span = f": {done['first_id']} to {done['last_id']}" if done["imported"] else ""
    out.show(done, [f"{done['imported']} requests imported{span}"])
    if not out.as_json:
        for one in done["skipped"]:
            out.warn(one_line(f"entry {one['index']} was skipped: {one['reason']}"))
    return 0


def _keep_only(path: Path, ids: Collection[int]) -> None:
    import msgspec

    data = msgspec.json.decode(path.read_bytes())
    log = data["log"]
    log["entries"] = [entry for entry in log["entries"] if entry.get("_dari", {}).get("id") in ids]
    path.write_text(encode_json(data))


def _move(draft: Path, target: Path) -> None:
    try:
        # 0600 from its first byte: it holds what was sent.
        file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(file, "wb") as copy, draft.open("rb") as source:
            os.fchmod(file, 0o600)
            shutil.copyfileobj(source, copy)
    except OSError as error:
        raise Failed(
            f"cannot write {target}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
        ) from error
