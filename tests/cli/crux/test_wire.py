"""What the commands ask is what the server's methods take: on this wire an argument too many is not noticed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import dari.cli.crux
from dari.daemon.stub import iter_exposed
from dari.terminal.service import TerminalService
from tests.support.terminal_service import house_in

SOURCES = sorted(Path(next(iter(dari.cli.crux.__path__))).rglob("*.py"))


def _methods(service: TerminalService) -> dict[str, inspect.Signature]:
    return {
        mark.name: inspect.signature(function) for api in service.apis for _, function, mark in iter_exposed(type(api))
    }


def _calls() -> Iterator[tuple[str, str, list[str], bool]]:
    """Each call with a method's name first: where, which, its arguments, and whether more of them are not seen."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            first = node.args[0] if isinstance(node, ast.Call) and node.args else None
            if not (
                isinstance(first, ast.Constant)
                and str(first.value).startswith("crux:")
                and not str(first.value).endswith("/")
            ):
                continue
            assert isinstance(node, ast.Call)
            names = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
            is_open = any(keyword.arg is None for keyword in node.keywords)
            yield f"{path.name}:{node.lineno}", str(first.value), names, is_open


async def _signatures(tmp_path: Path) -> dict[str, inspect.Signature]:
    async with house_in(tmp_path) as house:
        return _methods(house.service)


def test_every_call_of_a_command_fits_a_method_of_the_server(tmp_path: Path) -> None:
    import asyncio

    methods = asyncio.run(_signatures(tmp_path))
    calls = list(_calls())
    assert len(calls) > 50
    for where, name, given, is_open in calls:
        assert name in methods, f"{where}: {name}"
        parameters = methods[name].parameters
        unknown = set(given) - set(parameters)
        assert not unknown, f"{where}: {name} takes no {unknown}"
        if not is_open and "attach/" not in name and not where.startswith("loop.py"):
            needed = {
                each.name
                for each in list(parameters.values())[1:]
                if each.default is inspect.Parameter.empty and each.name not in given
            }
            assert not needed or given == [], f"{where}: {name} needs {needed}"


@pytest.mark.parametrize("method", ["split", "close", "focus", "list", "resize", "send-keys", "send-text"])
def test_the_methods_of_the_pane_backend_have_their_names(method: str, tmp_path: Path) -> None:
    import asyncio

    assert f"crux:pane/{method}" in asyncio.run(_signatures(tmp_path))
