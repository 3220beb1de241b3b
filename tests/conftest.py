"""`async def` tests run natively under asyncio, each in a loop of its own; what is of no machine and of nobody."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import left_processes, scheduling, stuck_tests
from tests.support.async_tests import run_async_test
from tests.support.waiting import wait_until

HUB_START_S = 30
SET_CHILD_SUBREAPER = 36

# No test asserts wall-clock time: a busy machine makes examples slow to draw and slow to run.
settings.register_profile("suite", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# A shell that puts the run into the background makes it ignore Ctrl-C, `nohup` a hang-up: children would inherit that.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(left_processes)
    config.pluginmanager.register(scheduling)
    config.pluginmanager.register(stuck_tests)


@pytest.fixture(autouse=True, scope="session")
def nobodys_machine() -> Iterator[None]:
    """A home that is nobody's, for what a test writes into one without naming it; and one CA that is trusted.

    Reading the hundred and more of a real machine takes 45 ms for every TLS context, and no test leaves the machine.
    """
    from dari.proxy.ca import CertificateAuthority

    made = tempfile.TemporaryDirectory(prefix="dari-", ignore_cleanup_errors=True)
    with made as folder, pytest.MonkeyPatch.context() as patch:
        home, roots = Path(folder, "home"), Path(folder, "roots.pem")
        home.mkdir()
        roots.write_bytes(CertificateAuthority.generate("a CA of nobody").pem)
        patch.setenv("HOME", str(home))
        patch.setenv("SHELL", "/bin/bash")  # a new user has sh, which knows less than tests ask
        patch.delenv("XDG_DATA_HOME", raising=False)
        patch.setenv("SSL_CERT_FILE", str(roots))
        patch.setenv("SSL_CERT_DIR", str(home))
        _homes.update(_read_homes())
        yield
        _homes.clear()
        _stop_hub()


def pytest_collection_finish() -> None:
    """20,000 tests stay for the whole run: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


_homes: dict[str, str | None] = {}
"""What the variables that name a home are between two tests."""


def _read_homes() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in ("HOME", "DARI_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """A home that stays set after a file is the home of every later one, and nobody stops the hub that runs there."""
    yield
    is_last_of_file = nextitem is None or nextitem.path != item.path
    if is_last_of_file:
        _adopt_nobody()
    if is_last_of_file and _homes and _homes != (left := _read_homes()):
        pytest.fail(f"{item.nodeid} leaves other homes than it found: {left}, not {_homes}", pytrace=False)


def _adopt_nobody() -> None:
    """A worker that owned children is a subreaper from then on: what later tests orphan would become its child and,
    as nobody waits for that, stay in /proc after its end."""
    reaper = sys.modules.get("dari.process.reaper")
    if reaper is not None and sys.platform == "linux" and reaper.become_subreaper.cache_info().currsize:
        reaper.become_subreaper.cache_clear()
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _stop_hub() -> None:
    """A daemon in that home starts the hub for its audit records and approvals; alone it stays for half an hour."""
    from dari.cli.hub.paths import BridgePaths
    from dari.daemon.lock import lock_holder
    from dari.daemon.unix_socket import answers

    paths = BridgePaths()
    wait_until(lambda: lock_holder(paths.start_lock_text) is None, within_s=HUB_START_S)
    if lock_holder(paths.lock_text) is None:
        return
    wait_until(lambda: answers(paths.cli_socket_text), within_s=HUB_START_S)
    command = [sys.executable, "-m", "dari.cli.crewx", "mcp", "remote", "daemon", "stop"]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server for the whole run, started by the first test that wants it; the URL has the password."""
    from tests.support.postgres_server import serving_postgres, with_password

    with serving_postgres() as url:
        yield with_password(url)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that is skipped has failed: nothing that it proves was seen."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and is_ci():
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{item.nodeid} was skipped, which CI does not allow: {reason}"
    return report


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner = asyncio.Runner(debug=False)
    run_async_test(pyfuncitem, runner.get_loop(), runner.close)
    return True
