"""`doctor`: everything that can be wrong with the bridge here, with the next step for each."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from dari.bridge.config.catalog import Catalog, CatalogEntry, LoadedFile
from dari.bridge.config.profile import StdioSettings
from dari.bridge.upstream.resolved import ResolvedServer
from dari.cli.kit.console import ProcessConsole, paint, print_json, print_lines
from dari.cli.kit.hints import name_program
from dari.cli.kit.parser import Command
from dari.cli.kit.table import one_line
from dari.cli.remote.context import USAGE, CommandContext
from dari.errors import DariError
from dari.installation import install_extra
from dari.process.program import build_environment, find_program
from dari.text.sanitize import escape_hidden

CheckMark = Literal["ok", "warning", "failed"]
RESOLVE_TIMEOUT_S = 10.0
_LAUNCHERS = {"node": "install Node.js", "npx": "install Node.js", "uvx": "pip install uv"}
_EXTRAS = (
    ("jsonschema_rs", "jsonschema-rs", "schemas", "arguments are not checked before they are sent"),
    ("yaml", "pyyaml", "bridge", "mcp.yaml files are not read"),
    ("mcp", "mcp", "oauth", "servers that ask for OAuth cannot be used"),
)
_ILL = ("backoff", "crash-loop", "quarantined", "stopped")


@dataclass(frozen=True, slots=True)
class RemoteCheck:
    """One thing that was looked at, what was found, and the next step."""

    name: str
    mark: CheckMark
    found: str
    hint: str = ""


async def run_checks(context: CommandContext) -> list[RemoteCheck]:
    catalog = context.view.catalog()
    return [
        *_files(context, catalog),
        *(await _servers(context, catalog)),
        *_daemon(context),
        *(await _sandbox()),
        *_programs(context, catalog),
        *_extras(),
        await _keyring(),
        *_waiting(context),
        await _audit(context),
    ]


def _files(context: CommandContext, catalog: Catalog) -> Iterator[RemoteCheck]:
    for file in catalog.files:
        yield _file(context, file)
    known_problems = {problem for file in catalog.files for problem in file.contents.problems}
    for problem in catalog.problems:
        if problem not in known_problems:
            yield RemoteCheck("file", "warning", problem)
    if not catalog.files:
        yield RemoteCheck("file", "ok", "no mcp.json exists yet", f"{context.program} add, or {context.program} import")


def _file(context: CommandContext, file: LoadedFile) -> RemoteCheck:
    contents = file.contents
    try:
        mode = f"{stat.S_IMODE(os.stat(contents.path).st_mode):04o}"
    except OSError:
        mode = "gone"
    count = len(contents.profiles)
    found = f"{contents.path} ({contents.layer}, mode {mode}): {count} server{'s' * (count != 1)}"
    if not contents.is_readable or file.is_kept:
        return RemoteCheck("file", "failed", f"{contents.path}: {'; '.join(contents.problems)}", "correct the file")
    if contents.broken:
        first = contents.broken[0]
        return RemoteCheck("file", "failed", f"{found}, {len(contents.broken)} broken: {first.message}", first.hint)
    if not file.is_trusted:
        changed = f", changed: {'; '.join(file.changes)}" if file.changes else ""
        return RemoteCheck(
            "file", "warning", f"{found}, not trusted{changed}", f"look at it: {context.program} trust {contents.path}"
        )
    if contents.problems:
        return RemoteCheck("file", "warning", f"{found}; {'; '.join(contents.problems)}")
    return RemoteCheck("file", "ok", found)


async def _servers(context: CommandContext, catalog: Catalog) -> list[RemoteCheck]:
    states = Counter(one.state for one in catalog.listed)
    summary = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    checks = [RemoteCheck("servers", "ok", summary, "" if catalog.listed else f"{context.program} add")]
    ready = [one for one in catalog.listed if one.state == "ready"]
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            checks += await asyncio.to_thread(lambda: [check for one in ready for check in _server(context, one)])
    except TimeoutError:
        checks.append(
            RemoteCheck(
                "servers", "warning", f"references did not resolve within {RESOLVE_TIMEOUT_S:g} s", "unlock the keyring"
            )
        )
    for status in context.bridge.statuses():
        if status.state in _ILL and status.last_error:
            found = f"{status.id} is in state {status.state}: {status.last_error}"
            checks.append(RemoteCheck("servers", "warning", found, f"{context.program} test {status.id}"))
    return checks


def _server(context: CommandContext, listed: CatalogEntry) -> Iterator[RemoteCheck]:
    """Nothing is started: do its references resolve, is its program there?"""
    try:
        target = ResolvedServer.of(context.view.book.resolve(listed), context.view.around, listed)
        if (spec := target.spec) is not None:
            find_program(spec.command[0], build_environment(spec.env, spec.inherit_env, spec.environ), spec.cwd)
    except DariError as error:
        yield RemoteCheck("servers", "failed", f"{listed.id}: {error.message}", error.hint)


def _daemon(context: CommandContext) -> Iterator[RemoteCheck]:
    from dari.cli.hub.paths import BridgePaths
    from dari.daemon.unix_socket import answers

    path = BridgePaths().cli_socket
    if not isinstance(context.console, ProcessConsole):
        count = len(context.bridge.statuses())
        yield RemoteCheck("daemon", "ok", f"runs (pid {os.getpid()}) on {path}; {count} servers used since its start")
    elif answers(path):
        yield RemoteCheck("daemon", "ok", f"runs on {path}; this command runs with --no-daemon")
    else:
        yield RemoteCheck("daemon", "ok", f"does not run; commands start it when they need it ({path})")


async def _sandbox() -> list[RemoteCheck]:
    from dari.sandbox.report import build_report

    found = await asyncio.to_thread(build_report)
    missing = [one for one in found.findings if one.is_wanted and not one.is_enforced]
    lines = [RemoteCheck("sandbox", "warning" if one in missing else "ok", _verdict(one)) for one in found.findings]
    if missing:
        hint = "profiles with sandbox: enforce do not start here; install bubblewrap, or use a newer kernel"
        lines.append(RemoteCheck("sandbox", "warning", f"{len(missing)} walls cannot be held on this machine", hint))
    return lines


def _verdict(finding: object) -> str:
    from dari.sandbox.report import Enforcement

    assert isinstance(finding, Enforcement)
    verdict = f"by {finding.by}" if finding.is_enforced else "NOT enforced"
    return f"{finding.aspect}: {verdict}" + (f" ({finding.note})" if finding.note else "")


def _programs(context: CommandContext, catalog: Catalog) -> Iterator[RemoteCheck]:
    path = context.view.around.environ.get("PATH", os.defpath)
    used = {
        os.path.basename(profile.connection.command)
        for profile in catalog.ready()
        if isinstance(profile.connection, StdioSettings)
    }
    for name, hint in _LAUNCHERS.items():
        found = shutil.which(name, path=path)
        if found:
            yield RemoteCheck("program", "ok", f"{name}: {found}")
        elif name in used:
            yield RemoteCheck("program", "failed", f"{name} is not on your PATH, and servers need it", hint)
        else:
            yield RemoteCheck("program", "ok", f"{name}: not on your PATH; no server needs it")


def _extras() -> Iterator[RemoteCheck]:
    from importlib import metadata

    for module, package, extra, loss in _EXTRAS:
        if find_spec(module) is None:
            yield RemoteCheck("library", "warning", f"{package} is missing: {loss}", install_extra(extra))
        else:
            yield RemoteCheck("library", "ok", f"{package} {metadata.version(package)}")


async def _keyring() -> RemoteCheck:
    from dari.bridge.oauth.keychain import Keychain

    if await Keychain().is_usable():
        return RemoteCheck("keyring", "ok", "there is one: ${keyring:service/name} works, logins are kept in it")
    return RemoteCheck("keyring", "ok", "none: logins are kept in a 0600 file, ${keyring:…} does not resolve")


def _waiting(context: CommandContext) -> Iterator[RemoteCheck]:
    held = Counter(one.server for one in context.bridge.pins.held() if not one.rejected_by)
    for server, count in held.items():
        found = f"{count} item{'s' * (count != 1)} of {server} changed, and wait for your look"
        yield RemoteCheck("held", "warning", found, f"{context.program} approve {server}")
    if not held:
        yield RemoteCheck("held", "ok", "no server changed what it shows")
    pending = context.bridge.approvals.pending()
    if pending:
        names = ", ".join(dict.fromkeys(one.name for one in pending))
        yield RemoteCheck("approvals", "warning", f"{len(pending)} calls wait: {names}", f"{context.program} approvals")
    else:
        yield RemoteCheck("approvals", "ok", "no call waits for a person")


async def _audit(context: CommandContext) -> RemoteCheck:
    from dari.core.audit.verify import verify

    directory = context.bridge.home / "audit"
    log = context.bridge.audit if "audit" in vars(context.bridge) else None
    if log is not None:
        if log.problem:
            return RemoteCheck("audit", "failed", f"{directory} cannot be written: {log.problem}", "free disk space")
        await asyncio.to_thread(log.flush, 2.0)
    report = await asyncio.to_thread(verify, directory)
    if report.broken is not None:
        where = f"{report.broken.file}:{report.broken.line}" if report.broken.file else "its end"
        return RemoteCheck("audit", "failed", f"{directory}: {where}: {report.broken.why}", "dari audit verify")
    if report.torn and log is None:
        return RemoteCheck(
            "audit", "warning", f"{directory}: the last line is not finished", "the next daemon mends it"
        )
    return RemoteCheck("audit", "ok", f"{directory}: {report.records} records, the chain holds")


_MARKS = {"ok": ("ok  ", "green"), "warning": ("warn", "yellow"), "failed": ("FAIL", "red")}
_ORDER = ("ok", "warning", "failed")


def add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")


async def run_doctor(arguments: argparse.Namespace, context: CommandContext) -> int:
    checks = await run_checks(context)
    worst = max((check.mark for check in checks), key=_ORDER.index, default="ok")
    if arguments.json:
        rows = [
            {"name": one.name, "status": one.mark, "found": one.found, "hint": name_program(one.hint)} for one in checks
        ]
        print_json(context.console, {"status": worst, "checks": rows})
    else:
        for check in checks:
            print_lines(context.console, _lines(check, context))
    return USAGE if worst == "failed" else 0


def _lines(check: RemoteCheck, context: CommandContext) -> list[str]:
    word, style = _MARKS[check.mark]
    text_lines = [f"{paint(word, style, context.console)}  {check.name:<9} {one_line(check.found)}"]
    return text_lines + [f"      hint: {line}" for line in escape_hidden(name_program(check.hint)).splitlines()]


COMMANDS = (
    Command(
        "doctor",
        "check files, servers, daemon, sandbox, programs, pins, approvals and the audit log",
        add_doctor,
        run_doctor,
        description="""\
Look at everything that servers depend on here, start none of them, and tell what to do where something is wrong.
To start servers as well: test --all. Exit code 1 when something is wrong that needs you.""",
        examples=(
            ("doctor", "every check, one a line"),
            ("doctor --json", "the same for a script, or for a bug report: no secret is in it"),
        ),
    ),
)
