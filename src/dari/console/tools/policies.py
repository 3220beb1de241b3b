"""`dari_policies`: which files decide what agents may do here, and in what state they are."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.errors import DariError
from dari.knowledge.paths import config_file
from dari.terminal.policy.config import Security, config_path, load_security

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

Part = Literal["terminal", "servers", "knowledge", "tokens", "hub"]


class PolicyFile(Struct, frozen=True, kw_only=True):
    part: Part
    path: str
    state: Literal["in force", "not there", "untrusted", "broken"]
    """`not there`: built-in rules count."""
    problem: str = ""
    hint: str = ""
    facts: dict[str, str] = {}
    """What it says, shortly."""


class PolicyList(Struct, frozen=True):
    files: list[PolicyFile]


class PolicyTools:
    """The tool `dari_policies`."""

    prefix = "dari"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True)
    async def policies(self) -> PolicyList:
        """Return the files that decide what agents may do, with their state and what they say."""
        return PolicyList(await asyncio.to_thread(lambda: list(self._files())))

    def _files(self) -> Iterator[PolicyFile]:
        yield _terminal()
        yield from self._servers()
        yield _plain("knowledge", config_file(None, os.environ))
        settings = self._backends.settings
        for path in (settings.client_tokens_path, settings.token_path):
            if path is not None:
                yield _plain("tokens", path, _private)

    def _servers(self) -> Iterator[PolicyFile]:
        catalog = self._backends.view.catalog()
        for file in catalog.files:
            contents = file.contents
            named = [one for one in catalog.listed if str(one.source).startswith(str(contents.path))]
            facts = {"servers": ", ".join(one.id for one in named)[:300]} if named else {}
            problem = "; ".join(contents.problems)[:500]
            is_broken = not contents.is_readable or file.is_kept
            state: Literal["broken", "in force", "untrusted"] = (
                "broken" if is_broken else "in force" if file.is_trusted else "untrusted"
            )
            hint = "" if file.is_trusted else "a person trusts it: Approvals, or dari remote trust"
            yield PolicyFile(
                part="servers", path=str(contents.path), state=state, problem=problem, hint=hint, facts=facts
            )


def _terminal() -> PolicyFile:
    path = config_path(os.environ, Path.home())
    try:
        security = load_security()
    except DariError as error:
        return PolicyFile(part="terminal", path=str(path), state="broken", problem=error.message, hint=error.hint)
    state: Literal["in force", "not there"] = "in force" if security.source else "not there"
    return PolicyFile(part="terminal", path=str(path), state=state, facts=_security_facts(security))


def _security_facts(security: Security) -> dict[str, str]:
    return {
        "asks": ", ".join(security.dangerous_patterns),
        "never": ", ".join(security.denied_patterns),
        "allowed": ", ".join(security.allowed_commands),
        "folders": ", ".join(security.allowed_directories),
        "sandbox": security.sandbox,
        "forms": ", ".join(security.elicitation_clients),
    }


def _plain(part: Part, path: Path, check: Callable[[os.stat_result], str] = lambda info: "") -> PolicyFile:
    try:
        info = path.stat()
    except OSError:
        return PolicyFile(part=part, path=str(path), state="not there")
    if problem := check(info):
        return PolicyFile(part=part, path=str(path), state="broken", problem=problem, hint=f"chmod 600 {path}")
    return PolicyFile(part=part, path=str(path), state="in force")


def _private(info: os.stat_result) -> str:
    return f"others can read it (mode {stat.S_IMODE(info.st_mode):04o})" if info.st_mode & 0o077 else ""
