"""Small projects with tests, and `crewx_tools_test` on them."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.codetools import code_tools

MAX_RUN_S = 80


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files below `folder`; their text is dedented."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


def run(folder: Path, *, environ: Mapping[str, str] | None = None, **arguments: object) -> dict[str, Any]:
    """One call, in a session of its own; with the environment of these tests, whose pytest is ours."""
    return asyncio.run(_run(folder, environ, arguments))


def run_with_progress(
    folder: Path, *, environ: Mapping[str, str] | None = None, **arguments: object
) -> tuple[dict[str, Any], list[Any]]:
    told: list[Any] = []
    return asyncio.run(_run(folder, environ, arguments, told)), told


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def own_environ() -> dict[str, str]:
    return {**os.environ, "VIRTUAL_ENV": sys.prefix}


async def _run(
    folder: Path, environ: Mapping[str, str] | None, arguments: Mapping[str, object], told: list[Any] | None = None
) -> dict[str, Any]:
    async with asyncio.timeout(MAX_RUN_S), code_tools(folder, environ=environ or own_environ()) as tools:
        # Without the plugins of our own environment, which take a second to import.
        env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        report = await tools.call("test", **{"env": env, **arguments})
        if told is not None:
            told += tools.caller.told
        return dict(report)
