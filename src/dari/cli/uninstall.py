"""`dari uninstall`: list what lives in the home, keys included, stop what runs, and remove it once that is confirmed.

Only what Dari made is touched: known names below its home, never the whole of a folder that may be somebody else's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dari import app, paths
from dari.bridge.config.locations import FILE_NAMES
from dari.bridge.oauth.store import LoginStore
from dari.cli.crux.tmux.shims import is_shim
from dari.cli.hub.paths import BridgePaths as BridgePlace
from dari.daemon.lock import lock_holder
from dari.errors import Conflict
from dari.installation import found
from dari.knowledge.daemon import KebabPaths
from dari.knowledge.paths import config_file, default_data_dir, logs_dir
from dari.proxy.daemon import CrabPaths as ProxyPlace
from dari.terminal.paths import CruxPaths as TerminalPlace
from dari.terminal.policy.config import config_path
from dari.transport.health import hub_on

STOP_TIMEOUT_S = 15.0
_POLL_S = 0.05

_IN_HOME = {
    "mcp.token": "the token of the hub's HTTP endpoint",
    "tokens.json": "the tokens of single clients",
    "console-sessions.json": "the browsers that are logged in to the console, as hashes",
    "tokens.used.json": "when they were used",
    "tokens.lock": "the lock of that file",
    "run": "sockets, locks and tokens of the daemons",
    "logs": "logs",
    "cache": "what can be made again",
    "crabd": "the proxy: private key of its CA, recorded traffic, rules, settings",
    "bridge": "other servers: logins, pins, trust, approvals, audit log",
    "crux": "the terminal: sessions, tokens, log",
}


class InstalledItem(NamedTuple):
    """Something of ours on the disk."""

    path: Path
    what: str
    is_setting: bool = False
    """A person wrote it."""


class DariProcess(NamedTuple):
    name: str
    pid: int


def run_uninstall(arguments: argparse.Namespace) -> int:
    """List; with `--yes` or a person's word, stop and remove. 1 when something could not be removed."""
    items = [item for item in _items() if not (arguments.keep_settings and item.is_setting)]
    daemons, logins = _running(), _logins_in_keyring()
    if not items and not daemons:
        print(f"nothing of Dari is left in {Path.home()}")
        _tell_the_rest()
        return 0
    _list(items, daemons, logins)
    if arguments.dry_run or not (arguments.yes or _is_confirmed()):
        print("\nnothing was removed; `dari uninstall --yes` removes all of it")
        return 0
    _stop(daemons)
    asyncio.run(_forget_logins())
    failures = [failure for item in items for failure in _remove(item.path)]
    for folder in (paths.home(), *(item.path.parent for item in items if item.is_setting)):
        _remove_if_empty(folder)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    print(f"\nremoved {len(items) - len(failures)} of {len(items)}")
    _tell_the_rest()
    return 1 if failures else 0


def _items() -> Iterator[InstalledItem]:
    home = paths.home()
    for name, what in _IN_HOME.items():
        yield from _present(home / name, what)
    for draft in sorted(home.glob(".mcp.token.*")):
        yield InstalledItem(draft, "a token file that was being written")
    shared = paths.runtime_path("hub").parent
    if shared.parent != home:
        yield from _present(shared, "sockets, locks and tokens of the daemons")
    terminal = TerminalPlace.of_environment().run_dir
    # A folder that CRUX_SOCKET names and that has another name may hold other things too.
    if terminal.name.endswith(".crux") and not terminal.is_relative_to(home):
        yield from _present(terminal, "the terminal: sessions, tokens, log")
    for name in FILE_NAMES:
        yield from _present(Path.home() / ".config" / "crewx" / name, "your servers, and keys that stand there", True)
    config = config_path(os.environ, Path.home())
    yield from _present(config, "your settings of the terminal", True)
    yield from _present(config.parent / "workspaces", "your workspaces of the terminal", True)
    usual = {name: value for name, value in os.environ.items() if name != "KEBAB_CONFIG"}
    yield from _present(default_data_dir(usual), "the knowledge base: documents, index, vectors, models")
    yield from _present(logs_dir(usual), "logs of the knowledge base")
    yield from _present(config_file(None, usual), "your settings of the knowledge base", True)
    for folder in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        shim = Path(folder) / "tmux"
        if os.path.isabs(folder) and is_shim(str(shim)):
            yield InstalledItem(shim, "what `crux tmux --install` wrote")


def _present(path: Path, what: str, is_setting: bool = False) -> Iterator[InstalledItem]:
    if os.path.lexists(path):
        yield InstalledItem(path, what, is_setting)


def _running() -> list[DariProcess]:
    """What holds our files open, each process once."""
    hub = hub_on(app.socket_path())
    locks = {
        "cruxd and its panes": TerminalPlace.of_environment().lock,
        "crabd": ProxyPlace().lock,
        "kebabd": KebabPaths().lock,
        "the bridge and its servers": BridgePlace().lock,
    }
    held = [DariProcess(name, pid) for name, lock in locks.items() if (pid := lock_holder(lock)) is not None]
    if hub is not None:
        held.insert(0, DariProcess(f"dari up at {hub.url}", hub.pid))
    held += _background_mcp()
    return list({one.pid: one for one in reversed(held)}.values())[::-1]


def _background_mcp() -> list[DariProcess]:
    from dari.cli.proxy.mcp import McpProcess

    place = ProxyPlace()
    record = McpProcess(place).running() if place.run_dir.is_dir() else None
    return [] if record is None else [DariProcess(f"crab-mcp at {record.url}", record.pid)]


def _logins_in_keyring() -> list[str]:
    return [login.profile for login in LoginStore(BridgePlace().state_dir).all() if login.place == "keyring"]


async def _forget_logins() -> None:
    store = LoginStore(BridgePlace().state_dir)
    for login in store.all():
        await store.login(login.profile, login.url).remove()


def _list(items: list[InstalledItem], daemons: list[DariProcess], logins: list[str]) -> None:
    for daemon in daemons:
        print(f"runs     {daemon.name} (pid {daemon.pid}); it is stopped first")
    for item in items:
        print(f"remove   {item.path}  {item.what} ({_size(item.path)})")
    for profile in logins:
        print(f"remove   keyring entry of the login to '{profile}'")
    home = paths.home()
    if home.is_dir():
        others = sorted(path for path in home.iterdir() if path not in {item.path for item in items})
        for path in others:
            print(f"keep     {path}  Dari did not make it")


def _size(path: Path) -> str:
    total = count = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                info = os.lstat(os.path.join(folder, name))
            except OSError:
                continue
            total, count = total + info.st_size, count + 1
    if not path.is_dir() or path.is_symlink():
        return f"{path.lstat().st_size} bytes"
    return f"{count} files, {total / 1e6:.1f} MB"


def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("\nRemove all of this? It cannot be undone. Type yes: ").strip().lower() == "yes"
    except EOFError:
        return False


def _stop(daemons: list[DariProcess]) -> None:
    """End them as a person would, and wait: one that still writes would make its files again."""
    for daemon in daemons:
        try:
            os.kill(daemon.pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        except PermissionError:
            raise Conflict(f"{daemon.name} (pid {daemon.pid}) is another user's", "stop it, then try again") from None
    until_s = time.monotonic() + STOP_TIMEOUT_S
    while left := _running():
        if time.monotonic() > until_s:
            names = ", ".join(f"{one.name} (pid {one.pid})" for one in left)
            raise Conflict(f"still running after {STOP_TIMEOUT_S:g} s: {names}", "stop it, then try again")
        time.sleep(_POLL_S)


def _remove(path: Path) -> list[str]:
    """Why it is still there, if it is. A link is removed, never what it points to."""
    failures: list[str] = []
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, onerror=lambda _, name, info: failures.append(f"cannot remove {name}: {info[1]}"))
        else:
            path.unlink()
    except FileNotFoundError:
        pass  # its daemon removed it when it stopped
    except OSError as error:
        failures.append(f"cannot remove {path}: {error.strerror}")
    return failures[:1]


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        pass  # it is not empty, or not there


def _tell_the_rest() -> None:
    print("\nwhat is left to do by hand:")
    print(
        "  clients       claude mcp remove dari (and crab, crux, kebab), and what other clients have in their settings"
    )
    print("  certificates  where you installed the proxy's CA in a system, a browser or a phone, remove it there")
    print(f"  the package   {found().removing()}")
