"""What `doctor` looks at: files, servers, daemon, sandbox, what is installed, what waits for a person, the log."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from dari.bridge.children.environment import build_environment
from dari.bridge.children.program import find_program
from dari.bridge.config.catalog import Catalog, CatalogEntry, LoadedFile
from dari.bridge.config.profile import StdioSettings
from dari.bridge.upstream.target import Target
from dari.cli.remote.terminal import ProcessTerminal
from dari.cli.remote.world import World
from dari.errors import DariError
from dari.installation import install_extra

Mark = Literal["ok", "warning", "failed"]
RESOLVE_S = 10.0
_LAUNCHERS = {"node": "install Node.js", "npx": "install Node.js", "uvx": "pip install uv"}
_EXTRAS = (
    ("jsonschema_rs", "jsonschema-rs", "schemas", "arguments are not checked before they are sent"),
    ("yaml", "pyyaml", "bridge", "mcp.yaml files are not read"),
    ("mcp", "mcp", "oauth", "servers that ask for OAuth cannot be used"),
)
_ILL = ("backoff", "crash-loop", "quarantined", "stopped")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, what was found, and the next step."""

    name: str
    mark: Mark
    found: str
    hint: str = ""


async def look(world: World) -> list[Check]:
    catalog = world.view.catalog()
    return [
        *_files(world, catalog),
        *(await _servers(world, catalog)),
        *_daemon(world),
        *(await _sandbox()),
        *_programs(world, catalog),
        *_extras(),
        await _keyring(),
        *_waiting(world),
        await _audit(world),
    ]


def _files(world: World, catalog: Catalog) -> Iterator[Check]:
    for file in catalog.files:
        yield _file(world, file)
    told = {problem for file in catalog.files for problem in file.contents.problems}
    for problem in catalog.problems:
        if problem not in told:
            yield Check("file", "warning", problem)
    if not catalog.files:
        yield Check("file", "ok", "there is no mcp.json yet", f"{world.program} add, or {world.program} import")


def _file(world: World, file: LoadedFile) -> Check:
    contents = file.contents
    try:
        mode = f"{stat.S_IMODE(os.stat(contents.path).st_mode):04o}"
    except OSError:
        mode = "gone"
    count = len(contents.profiles)
    found = f"{contents.path} ({contents.layer}, mode {mode}): {count} server{'s' * (count != 1)}"
    if not contents.is_readable or file.is_kept:
        return Check("file", "failed", f"{contents.path}: {'; '.join(contents.problems)}", "correct the file")
    if contents.broken:
        first = contents.broken[0]
        return Check("file", "failed", f"{found}, {len(contents.broken)} broken: {first.message}", first.hint)
    if not file.is_trusted:
        changed = f", changed: {'; '.join(file.changes)}" if file.changes else ""
        return Check(
            "file", "warning", f"{found}, not trusted{changed}", f"look at it: {world.program} trust {contents.path}"
        )
    if contents.problems:
        return Check("file", "warning", f"{found}; {'; '.join(contents.problems)}")
    return Check("file", "ok", found)


async def _servers(world: World, catalog: Catalog) -> list[Check]:
    states = Counter(one.state for one in catalog.listed)
    told = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    checks = [Check("servers", "ok", told, "" if catalog.listed else f"{world.program} add")]
    ready = [one for one in catalog.listed if one.state == "ready"]
    try:
        async with asyncio.timeout(RESOLVE_S):
            checks += await asyncio.to_thread(lambda: [check for one in ready for check in _server(world, one)])
    except TimeoutError:
        checks.append(
            Check("servers", "warning", f"references did not resolve within {RESOLVE_S:g} s", "unlock the keyring")
        )
    for status in world.bridge.statuses():
        if status.state in _ILL and status.last_error:
            found = f"{status.id} is in state {status.state}: {status.last_error}"
            checks.append(Check("servers", "warning", found, f"{world.program} test {status.id}"))
    return checks


def _server(world: World, listed: CatalogEntry) -> Iterator[Check]:
    """Nothing is started: do its references resolve, is its program there?"""
    try:
        target = Target.of(world.view.book.resolve(listed), world.view.around, listed)
        if (spec := target.spec) is not None:
            find_program(spec.command[0], build_environment(spec.env, spec.inherit_env, spec.environ), spec.cwd)
    except DariError as error:
        yield Check("servers", "failed", f"{listed.id}: {error.message}", error.hint)


def _daemon(world: World) -> Iterator[Check]:
    from dari.bridge.cli_socket.protocol import SOCKET_NAME
    from dari.daemon.probe import answers
    from dari.paths import runtime_path

    path = runtime_path("bridge") / SOCKET_NAME
    if not isinstance(world.terminal, ProcessTerminal):
        count = len(world.bridge.statuses())
        yield Check("daemon", "ok", f"runs (pid {os.getpid()}) on {path}; {count} servers used since its start")
    elif answers(path):
        yield Check("daemon", "ok", f"runs on {path}; this command was told not to use it")
    else:
        yield Check("daemon", "ok", f"does not run; commands start it when they need it ({path})")


async def _sandbox() -> list[Check]:
    from dari.sandbox.report import build_report

    found = await asyncio.to_thread(build_report)
    missing = [one for one in found.findings if one.is_wanted and not one.is_enforced]
    lines = [Check("sandbox", "warning" if one in missing else "ok", _verdict(one)) for one in found.findings]
    if missing:
        hint = "profiles with sandbox: enforce do not start here; install bubblewrap, or use a newer kernel"
        lines.append(Check("sandbox", "warning", f"{len(missing)} walls cannot be held on this machine", hint))
    return lines


def _verdict(finding: object) -> str:
    from dari.sandbox.report import Enforcement

    assert isinstance(finding, Enforcement)
    verdict = f"by {finding.by}" if finding.is_enforced else "NOT enforced"
    return f"{finding.aspect}: {verdict}" + (f" ({finding.note})" if finding.note else "")


def _programs(world: World, catalog: Catalog) -> Iterator[Check]:
    path = world.view.around.environ.get("PATH", os.defpath)
    used = {
        os.path.basename(profile.connection.command)
        for profile in catalog.ready()
        if isinstance(profile.connection, StdioSettings)
    }
    for name, hint in _LAUNCHERS.items():
        found = shutil.which(name, path=path)
        if found:
            yield Check("program", "ok", f"{name}: {found}")
        elif name in used:
            yield Check("program", "failed", f"{name} is not on your PATH, and servers need it", hint)
        else:
            yield Check("program", "ok", f"{name}: not on your PATH; no server needs it")


def _extras() -> Iterator[Check]:
    from importlib import metadata

    for module, package, extra, loss in _EXTRAS:
        if find_spec(module) is None:
            yield Check("library", "warning", f"{package} is missing: {loss}", install_extra(extra))
        else:
            yield Check("library", "ok", f"{package} {metadata.version(package)}")


async def _keyring() -> Check:
    from dari.bridge.oauth.keychain import Keychain

    if await Keychain().is_usable():
        return Check("keyring", "ok", "there is one: ${keyring:service/name} works, logins are kept in it")
    return Check("keyring", "ok", "none: logins are kept in a 0600 file, ${keyring:…} does not resolve")


def _waiting(world: World) -> Iterator[Check]:
    held = Counter(one.server for one in world.bridge.pins.held() if not one.rejected_by)
    for server, count in held.items():
        found = f"{count} item{'s' * (count != 1)} of {server} changed, and wait for your look"
        yield Check("held", "warning", found, f"{world.program} approve {server}")
    if not held:
        yield Check("held", "ok", "no server changed what it shows")
    pending = world.bridge.approvals.pending()
    if pending:
        names = ", ".join(dict.fromkeys(one.name for one in pending))
        yield Check("approvals", "warning", f"{len(pending)} calls wait: {names}", f"{world.program} approvals")
    else:
        yield Check("approvals", "ok", "no call waits for a person")


async def _audit(world: World) -> Check:
    from dari.core.audit.verify import verify

    directory = world.bridge.home / "audit"
    log = world.bridge.audit if "audit" in vars(world.bridge) else None
    if log is not None:
        if log.problem:
            return Check("audit", "failed", f"{directory} cannot be written: {log.problem}", "free disk space")
        await asyncio.to_thread(log.flush, 2.0)
    report = await asyncio.to_thread(verify, directory)
    if report.broken is not None:
        where = f"{report.broken.file}:{report.broken.line}" if report.broken.file else "its end"
        return Check("audit", "failed", f"{directory}: {where}: {report.broken.why}", "dari audit verify")
    if report.torn and log is None:
        return Check("audit", "warning", f"{directory}: the last line is not finished", "the next daemon mends it")
    return Check("audit", "ok", f"{directory}: {report.records} records, the chain holds")
