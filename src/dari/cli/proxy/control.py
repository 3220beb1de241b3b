"""`dari proxy start | stop | status | doctor | env | capture`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_pairs, one_line
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, for_shell, group, leaf
from dari.errors import Conflict
from dari.paths import log_hint

_MARKS = {"ok": ("ok  ", "green"), "warning": ("warn", "yellow"), "failed": ("FAIL", "red")}
_START = """
dari proxy start                          listen on 127.0.0.1:8888
dari proxy start --ca                     and make a CA when there is none, to decrypt HTTPS
dari proxy start --listen 127.0.0.1:9000  on another port; also moves a running proxy
dari proxy start --json | jq -r .proxy_url
"""
_STOP = """
dari proxy stop              end every connection; crabd stays, with rules and traffic
dari proxy stop --daemon     end crabd and its MCP server; rules, settings and traffic are kept on disk
"""
_STATUS = """
dari proxy status
dari proxy status --json | jq -r .status      running or stopped
"""
_DOCTOR = """
dari proxy doctor            every check with its hint; exit code 1 when one failed
"""
_ENV = """
eval "$(dari proxy env)"                        sh, bash, zsh
dari proxy env --shell fish | source
dari proxy env --shell powershell | Out-String | Invoke-Expression
dari proxy env --json | jq .variables           for a Dockerfile or an IDE
"""
_CAPTURE = """
dari proxy capture off       requests pass, nothing is recorded
dari proxy capture on
dari proxy capture           which of the two?
"""


def add_start(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    parser = leaf(commands, "start", _start, help, _START)
    parser.add_argument("--listen", metavar="IP:PORT", help="where to listen (kept; default: as set before)")
    parser.add_argument("--ca", action="store_true", help="make a CA when none is loaded")


def add_stop(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    parser = leaf(commands, "stop", _stop, help, _STOP, starts=False)
    parser.add_argument(
        "--daemon", action="store_true", help="end crabd too, and the MCP server that `dari proxy mcp start` started"
    )


def add_status(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    leaf(commands, "status", _status, help, _STATUS, starts=False)


def add_doctor(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    leaf(commands, "doctor", _doctor, help, _DOCTOR, starts=False)


def add_env(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    parser = leaf(commands, "env", _env, help, _ENV)
    parser.add_argument("--shell", choices=("sh", "fish", "powershell"), default="sh", help="default: %(default)s")


def add_capture(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "capture", help, _CAPTURE)
    leaf(words, "on", _capture_on, "record requests", _CAPTURE)
    leaf(words, "off", _capture_off, "pass requests on without recording them", _CAPTURE)
    leaf(words, "status", _capture_status, "whether requests are recorded", _CAPTURE)


async def _start(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    from dari.cli.proxy.lease import adopt
    from dari.proxy.errors import ProxyAlreadyRunning

    await crab.start()
    adopt(crab.place)
    if arguments.listen is not None:
        await crab.call("engine.set_listen_addr", listen_addr=arguments.listen)
    if arguments.ca and not (await crab.call("ca.status"))["loaded"]:
        with suppress(Conflict):  # another one has just made it
            await crab.call("ca.generate")
    is_new = True
    try:
        await crab.call("proxy.start")
    except ProxyAlreadyRunning:
        is_new = False
    info = await crab.call("proxy.info")
    environment = await crab.call("proxy.environment")
    payload = {
        **info,
        "was_running": not is_new,
        "started_crabd": crab.started_pid is not None,
        **{name: environment[name] for name in ("proxy_url", "ca_cert_path", "variables")},
    }
    out.show(payload, _how_to_use(info, environment, is_new))
    return 0


def _how_to_use(info: dict[str, Any], environment: dict[str, Any], is_new: bool) -> Iterator[str]:
    url, ca = environment["proxy_url"], environment["ca_cert_path"]
    yield f"The proxy {'listens' if is_new else 'runs already'} on {info['address']}"
    yield ""
    yield "  one command      dari proxy run -- CMD"
    yield '  this shell       eval "$(dari proxy env)"'
    trust = f" --cacert {ca}" if ca else ""
    yield f"  by hand          curl -x {url}{trust} http{'s' if ca else ''}://example.com/"
    yield "  watch            dari proxy traffic --follow"
    if ca:
        yield "  decrypt a host   dari proxy rules add allow example.com"
    else:
        yield "  HTTPS            passes through unread without a CA (dari proxy ca generate)"
    for note in info["notes"]:
        yield f"  note             {one_line(note)}"


async def _stop(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if arguments.daemon:
        from dari.cli.proxy.mcp import McpProcess

        await McpProcess(crab.place).stop()  # its callers' token goes away with crabd
    if not crab.is_up():
        out.show({"status": "stopped", "daemon": "stopped"}, ["Nothing to stop: crabd does not run"])
        return 0
    await crab.call("proxy.stop")
    if arguments.daemon:
        await crab.shut_down()
    daemon = "stopped" if arguments.daemon else "running"
    said = "The proxy and crabd are stopped" if arguments.daemon else "The proxy is stopped (crabd goes on)"
    out.show({"status": "stopped", "daemon": daemon}, [said])
    return 0


async def _status(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if not crab.is_up():
        nothing = {"status": "stopped", "daemon": "stopped", "socket": str(crab.place.socket)}
        out.show(nothing, ["stopped: crabd does not run (dari proxy start)"])
        return 0
    info = await crab.call("proxy.info")
    payload = {**info, "daemon": "running", "pid": crab.pid, "socket": str(crab.place.socket)}
    out.show(payload, _status_lines(payload, out))
    return 0


def _status_lines(info: dict[str, Any], out: Output) -> Iterator[str]:
    is_running = info["status"] == "running"
    where = f"on {info['address']}" if is_running else f"({info['listen_addr']} when started)"
    yield f"{out.paint(info['status'], 'green' if is_running else 'yellow')} {where}"
    yield from format_pairs(
        {
            "  transparent": info["transparent_address"],
            "  capture": "on" if info["capture"] == "running" else "off: nothing is recorded",
            "  CA": info["ca"] if info["ca"] == "loaded" else "none: HTTPS passes through unread",
            "  requests": info["requests_recorded"],
            "  rules": info["rules"],
            "  connections": info["connections"],
            "  refused us": ", ".join(info["pinned_hosts"]),
            "  crabd": f"pid {info['pid']}, {info['socket']}",
        }
    )
    for note in info["notes"]:
        yield f"  note: {one_line(note)}"


async def _doctor(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if not crab.is_up():
        found = {
            "name": "crabd",
            "status": "warning",
            "found": f"nobody answers on {crab.place.socket}",
            "hint": log_hint(crab.place.log, "dari proxy start starts it"),
        }
        diagnosis: dict[str, Any] = {"running": False, "checks": [found]}
    else:
        diagnosis = await crab.call("daemon.doctor")
        for check in diagnosis["checks"]:
            check["hint"] = for_shell(check.get("hint", ""))
    out.show(diagnosis, _check_lines(diagnosis["checks"], out))
    return 1 if any(check["status"] == "failed" for check in diagnosis["checks"]) else 0


def _check_lines(checks: list[dict[str, str]], out: Output) -> Iterator[str]:
    for check in checks:
        mark, style = _MARKS[check["status"]]
        yield f"{out.paint(mark, style)}  {check['name']:<9} {one_line(check['found'])}"
        if check["hint"]:
            yield f"      hint: {one_line(check['hint'])}"


async def _env(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    environment = await crab.call("proxy.environment", shell=arguments.shell)
    environment["hints"] = [for_shell(hint) for hint in environment["hints"]]
    out.show(environment, [environment["script"]])
    if not out.as_json and out.width is not None:
        how = _ENV.strip().splitlines()[("sh", "fish", "powershell").index(arguments.shell)].split("   ")[0]
        out.note("", f"# these are not set yet; this sets them: {how}", *(f"# {hint}" for hint in environment["hints"]))
    return 0


async def _capture_on(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return _captured(await crab.call("capture.start"), out)


async def _capture_off(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return _captured(await crab.call("capture.stop"), out)


async def _capture_status(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return _captured(await crab.call("capture.status"), out)


def _captured(state: dict[str, Any], out: Output) -> int:
    is_on = state["status"] == "running"
    out.show(state, ["capture is on" if is_on else "capture is off: requests pass and are not recorded"])
    return 0
