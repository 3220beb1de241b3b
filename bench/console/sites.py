"""Each contender running, with a page to look at: empty, or with 50,000 flows and a pane that prints at full speed."""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

from bench.bridge.household import environment
from bench.console.browser import Site
from bench.console.contenders import BIN, INSPECTOR, MITMWEB, NODE, OURS, PEER, Contender
from bench.errors import BenchError
from bench.machine import ROOT, clean_environment, free_port
from bench.processes import Process, Scratch, spawn, stop, wait_until_listening
from bench.proxy.usage import cpu_s
from dari.console.script_chunks import chunk_names
from dari.console.static_files import FOLDER, version

HERE = ROOT / "bench" / "console"
START_S = 60.0
FILL_S = 150.0
FLOWS = 50_000
# mitmweb needs 264 s for 50,000 before it answers anybody: it gets a tenth, which is in its favour.
MITMWEB_FLOWS = 5_000
# With 10 a second the Inspector's page answered nothing in 12 s, with 100 nothing in 30 s (on a busy machine).
LOGS_PER_S = 1
FLOWS_PER_S = 100
FILL_PER_S = 1000
PRINTING = "yes 'the quick brown fox jumps over the lazy dog 0123456789'"


@dataclass(slots=True)
class Running:
    contender: Contender
    site: Site
    process: Process
    busy_urls: Sequence[str] = ()
    """What is looked at under load."""
    further_pids: list[int] = field(default_factory=list)
    load: Callable[[], AbstractContextManager[None]] = nullcontext
    """What goes on while the pages are looked at; it is entered when they are open."""
    steady_load: Callable[[], AbstractContextManager[None]] = nullcontext
    """So much in a second, however busy the machine is; the first of the pages shows it."""

    def cpu_s(self) -> float:
        """Of the server and what belongs to it."""
        return sum(cpu_s(pid) for pid in (self.process.pid, *self.further_pids))


class DariHub:
    """`dari up` in a home of its own, spoken to as an agent does."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self.home = scratch.path / name
        self.port = free_port()
        self._scratch = scratch
        self._env = environment(self.home, BIN, DARI_HOME=str(self.home / "dari"), SHELL="/bin/sh")
        self._session = ""

    @contextmanager
    def running(self) -> Iterator[Process]:
        token = self._scratch.token_path
        words = [str(BIN / "dari"), "up", "--http-port", str(self.port), "--token-path", str(token)]
        process = spawn(OURS, words, self._scratch, pipes=False, env=self._env, cwd=self.home)
        try:
            wait_until_listening(OURS, process, self.port, self._scratch)
            yield process
        finally:
            stop(process)

    def login_link(self) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            text = self._scratch.log(OURS).read_text(errors="replace")
            if found := re.findall(rf"http://\S*:{self.port}/login\S+", text):
                return str(found[-1])
            time.sleep(0.05)
        raise BenchError("dari up printed no login link")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        if not self._session:
            params = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }
            self._post("initialize", params)
        result = self._post("tools/call", {"name": tool, "arguments": arguments})["result"]
        if result.get("isError"):
            raise BenchError(f"{tool}: {result['content']}")
        return dict(result.get("structuredContent") or {})

    def _post(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self._scratch.token_path.read_text().strip()}",
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        self._session = reply.getheader("Mcp-Session-Id") or self._session
        text = reply.read().decode()
        connection.close()
        if "text/event-stream" in (reply.getheader("Content-Type") or ""):
            text = next(line[6:] for line in reversed(text.splitlines()) if line.startswith("data: {"))
        return dict(json.loads(text))

    def pids(self) -> list[int]:
        """The daemons, which are no children of the hub."""
        found = []
        for path in (self.home / "dari").rglob("*.pid"):
            text = path.read_text().strip()
            if text.isdigit() and Path(f"/proc/{text}").exists():
                found.append(int(text))
        return found


@contextmanager
def dari(browser: Browser, scratch: Scratch, *, is_busy: bool = False) -> Iterator[Running]:
    hub = DariHub(scratch, f"dari-{free_port()}")
    with hub.running() as process:
        origin = f"http://127.0.0.1:{hub.port}"
        context = browser.new_context()
        page = context.new_page()
        page.goto(hub.login_link())
        login = context.storage_state()
        context.close()
        running = Running(OURS, Site(f"{origin}/", login), process)
        if not is_busy:
            yield running
            return
        proxy, port = free_port(), free_port()
        hub.call("crab_engine_set_listen_addr", listen_addr=f"127.0.0.1:{proxy}")
        hub.call("crab_rules_add_allow", matcher=f"127.0.0.1:{port}")
        hub.call("crab_proxy_start")
        pane = hub.call("crux_create_pane", name="printing")["id"]
        running.busy_urls = (f"{origin}/traffic", f"{origin}/terminals/{pane}")
        running.further_pids = [pid for pid in hub.pids() if pid != process.pid]

        @contextmanager
        def load() -> Iterator[None]:
            with traffic(proxy, port, FLOWS + 1000, FLOWS_PER_S):
                hub.call("crux_send_text", pane_id=pane, text=PRINTING, enter=True)
                yield
                hub.call("crux_send_keys", pane_id=pane, keys="C-c")

        running.load = load
        running.steady_load = lambda: traffic(proxy, port, 0, FLOWS_PER_S)
        yield running


def all_bytes(site: Site) -> int:
    """Of every file that the console can ask for in one language, as a browser is sent it."""
    address = urlsplit(site.url)
    styles = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.css")]
    names = ["icon.svg", *styles, *(f"en/{name}" for name in chunk_names())]
    cookies = [] if site.login is None else site.login.get("cookies", [])
    headers = {"Accept-Encoding": "br", "Cookie": "; ".join(f"{one['name']}={one['value']}" for one in cookies)}
    total = 0
    for path in ("/", *(f"/static/{version()}/{name}" for name in names)):
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=START_S)
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        if reply.status != 200:
            raise BenchError(f"{path} was answered with {reply.status}")
        total += len(reply.read())
        connection.close()
    return total


@contextmanager
def mitmweb(browser: Browser, scratch: Scratch, *, is_busy: bool = False) -> Iterator[Running]:
    port, web, origin = free_port(), free_port(), free_port()
    home = scratch.path / f"mitmweb-{port}"
    home.mkdir()
    words = [str(MITMWEB.program), "-q", "--no-web-open-browser", "--set", f"confdir={home}"]
    words += [
        "--listen-host",
        "127.0.0.1",
        "--listen-port",
        str(port),
        "--web-host",
        "127.0.0.1",
        "--web-port",
        str(web),
    ]
    if is_busy:
        file = scratch.path / "flows"
        if not file.exists():
            command = [str(PEER.python), str(HERE / "flows_child.py"), str(file), str(MITMWEB_FLOWS)]
            subprocess.run(command, check=True, timeout=FILL_S, env=clean_environment())
        words += ["-r", str(file)]
    process = spawn(MITMWEB, words, scratch, pipes=False)
    try:
        wait_until_listening(MITMWEB, process, web, scratch)
        running = Running(MITMWEB, Site(f"http://127.0.0.1:{web}/"), process, (f"http://127.0.0.1:{web}/#/flows",))
        if not is_busy:
            yield running
            return
        wait_until_listening(MITMWEB, process, port, scratch)
        _wait_until_read(web)
        running.load = running.steady_load = lambda: traffic(port, origin, 0, FLOWS_PER_S)
        yield running
    finally:
        stop(process)


def _wait_until_read(port: int) -> None:
    """mitmweb answers nobody while it reads a file of flows."""
    deadline = time.monotonic() + FILL_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=FILL_S)
        began = time.monotonic()
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
            if time.monotonic() - began < 1.0:
                return
        except OSError:
            pass
        finally:
            connection.close()
    raise BenchError(f"mitmweb has not read {MITMWEB_FLOWS} flows after {FILL_S:g} s")


@contextmanager
def inspector(browser: Browser, scratch: Scratch, *, is_busy: bool = False) -> Iterator[Running]:
    """As it opens, without a server; under load with one that logs."""
    port = free_port()
    home = scratch.path / f"inspector-{port}"
    more = {
        "CLIENT_PORT": str(port),
        "MCP_SANDBOX_PORT": str(free_port()),
        "MCP_APP_ORIGIN_PORT": str(free_port()),
        "MCP_AUTO_OPEN_ENABLED": "false",
        "DANGEROUSLY_OMIT_AUTH": "true",
    }
    words = [str(NODE), str(INSPECTOR.program), "--web"]
    if is_busy:
        words += [sys.executable, str(HERE / "logging_child.py"), str(LOGS_PER_S)]
    process = spawn(INSPECTOR, words, scratch, pipes=False, env=environment(home, NODE.parent, **more))
    try:
        wait_until_listening(INSPECTOR, process, port, scratch)
        yield Running(INSPECTOR, Site(f"http://127.0.0.1:{port}/"), process, (f"http://127.0.0.1:{port}/",))
    finally:
        stop(process)


SITES: dict[str, Callable[..., AbstractContextManager[Running]]] = {
    OURS.name: dari,
    MITMWEB.name: mitmweb,
    INSPECTOR.name: inspector,
}


@contextmanager
def traffic(proxy: int, origin: int, first: int, per_s: int) -> Iterator[None]:
    """Requests through a proxy until the block ends; it is entered when the first ones are answered."""
    words = [sys.executable, str(HERE / "traffic_child.py"), str(proxy), str(origin), str(first)]
    words += [str(FILL_PER_S), str(per_s)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=clean_environment())
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise BenchError(f"no traffic: its client exited with {process.wait(10)}")
        yield
    finally:
        stop(process)


def settle(page: Page, contender: Contender) -> None:
    """The page shows what it has to show under load; BenchError when it never does."""
    if contender is OURS and "/traffic" in page.url:
        _wait(page, "the page has all flows", lambda: _number(page.locator(".flow-count").inner_text()) >= FLOWS)
    elif contender is OURS:
        _wait(page, "the pane is shown", lambda: page.locator(".term[data-state='live']").count())
    elif contender is MITMWEB:
        _wait(page, "flows are shown", lambda: page.locator("tr").count() > 10)
    else:
        page.get_by_role("switch").first.click(force=True)
        page.get_by_text("Logs", exact=True).first.click()
        _wait(page, "messages are shown", lambda: page.get_by_text("/api/items/").count())
    page.wait_for_timeout(3000)


def _number(text: str) -> int:
    digits = re.sub(r"[^0-9]", "", text.split(" ")[0])
    return int(digits or 0)


def _wait(page: Page, what: str, holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + FILL_S
    while not holds():
        if time.monotonic() > deadline:
            page.screenshot(path=str(ROOT / ".dev" / "bench" / "console-failed.png"))
            raise BenchError(f"{page.url}: not so after {FILL_S:g} s: {what}", "see .dev/bench/console-failed.png")
        page.wait_for_timeout(200)
