"""`dari proxy config` and `dari proxy set …`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_pairs, format_value
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, Handle, byte_rate, group, leaf, on_off
from dari.errors import InvalidInput

_CONFIG = """
dari proxy config
dari proxy config --json | jq .throttle
"""
_SET = """
dari proxy set listen 127.0.0.1:9000
dari proxy set preset 3G
dari proxy set throttle --latency-ms 200 --down 64k
dari proxy set upstream --proxy http://proxy.example:3128
"""
_NONE = ("", "none")


def add_config(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "config", help, _CONFIG)
    leaf(words, "show", _show, help, _CONFIG)


def add_set(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "set", help, _SET)

    def setting(name: str, handle: Handle, said: str, examples: str) -> argparse.ArgumentParser:
        return leaf(words, name, handle, said, "\n".join(f"dari proxy set {line}" for line in examples.split("\n")))

    parser = setting("listen", _listen, "where the proxy listens", "listen 127.0.0.1:9000\nlisten 0.0.0.0:8888")
    parser.add_argument("address", metavar="IP:PORT")
    parser = setting("inspect", _inspect, "keep bodies, or heads only", "inspect off")
    parser.add_argument("enabled", metavar="on|off", type=on_off)
    parser = setting(
        "throttle",
        _throttle,
        "a slow link, by its numbers",
        "throttle --latency-ms 200 --down 64k --up 16k\nthrottle --latency-ms 500 --host example.com\nthrottle off",
    )
    parser.add_argument("enabled", metavar="on|off", type=on_off, nargs="?", default=True, help="default: on")
    parser.add_argument("--latency-ms", metavar="N", type=int, default=0, help="before each answer")
    parser.add_argument("--jitter-ms", metavar="N", type=int, default=0, help="give or take up to so much")
    parser.add_argument("--down", metavar="RATE", type=byte_rate, default=0, help="bytes a second: 65536, 64k, 1m")
    parser.add_argument("--up", metavar="RATE", type=byte_rate, default=0, help="likewise for uploads")
    _add_hosts(parser)
    parser = setting("preset", _preset, "a slow link, by its name", "preset 3G\npreset '56k modem'\npreset off")
    parser.add_argument("name", metavar="NAME", help="3G, 4G, ADSL-2M, ADSL2-8M, '56k modem', ISDN-256, … or off")
    parser.add_argument("--jitter-ms", metavar="N", type=int, default=0, help="give or take up to so much")
    _add_hosts(parser)
    parser = setting(
        "allowlist", _allowlist, "which devices may use the proxy", "allowlist on 192.168.1.20\nallowlist off"
    )
    parser.add_argument("enabled", metavar="on|off", type=on_off)
    parser.add_argument("ips", metavar="IP", nargs="*", help="devices, beside this machine")
    parser = setting("transparent", _transparent, "a second port for redirected traffic", "transparent on --port 8889")
    parser.add_argument("enabled", metavar="on|off", type=on_off)
    parser.add_argument("--port", type=int, default=8889, help="default: %(default)s")
    _add_upstream(setting)
    parser = setting(
        "policy", _policy, "private targets, pinned clients", "policy --block-private on\npolicy --pass-pinned on"
    )
    parser.add_argument("--block-private", metavar="on|off", type=on_off, help="refuse private addresses as targets")
    parser.add_argument(
        "--pass-pinned", metavar="on|off", type=on_off, help="stop decrypting a host whose clients refuse our CA"
    )


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="HOST", action="append", default=[], help="only these hosts; repeatable")


def _add_upstream(setting: Callable[[str, Handle, str, str], argparse.ArgumentParser]) -> None:
    parser = setting(
        "upstream",
        _upstream,
        "how origins are reached and trusted; other settings stay",
        "upstream --proxy http://proxy.example:3128\nupstream --proxy none\nupstream --insecure-host dev.local\n"
        "upstream --client-cert bank.example client.pem client.key",
    )
    parser.add_argument(
        "--proxy", metavar="URL", help="another proxy (http, https, socks5) to go through; 'none' takes it back"
    )
    parser.add_argument(
        "--bypass",
        metavar="HOST",
        action="append",
        help="reached without it, as in NO_PROXY; repeatable, 'none' for none",
    )
    parser.add_argument("--ca-file", metavar="PEM", help="roots to trust origins by; 'none' for the system's")
    parser.add_argument(
        "--insecure-host",
        metavar="HOST",
        action="append",
        help="do not verify it; repeatable, 'none' for none",
    )
    parser.add_argument(
        "--client-cert",
        metavar=("HOST", "CERT", "KEY"),
        nargs=3,
        action="append",
        help="shown to this host; repeatable, replaces those set before",
    )
    parser.add_argument("--no-client-certs", action="store_true", help="forget client certificates")


async def _show(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return _print_config(await crab.call("engine.config_dump"), out)


async def _listen(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _set(crab, out, "engine.set_listen_addr", listen_addr=arguments.address)


async def _inspect(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _set(crab, out, "engine.set_inspect_enabled", enabled=arguments.enabled)


async def _throttle(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    if not arguments.enabled:
        return await _set(crab, out, "engine.set_throttle", enabled=False)
    if not (arguments.latency_ms or arguments.jitter_ms or arguments.down or arguments.up):
        raise InvalidInput("a throttle needs a limit", "give --latency-ms, --down or --up; or: set preset 3G")
    return await _set(
        crab,
        out,
        "engine.set_throttle",
        enabled=True,
        latency_ms=arguments.latency_ms,
        jitter_ms=arguments.jitter_ms,
        downstream_bps=arguments.down,
        upstream_bps=arguments.up,
        only_selected_hosts=bool(arguments.host),
        selected_hosts=arguments.host,
    )


async def _preset(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _set(
        crab,
        out,
        "engine.set_throttle_preset",
        preset=arguments.name,
        selected_hosts=arguments.host,
        jitter_ms=arguments.jitter_ms,
    )


async def _allowlist(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _set(crab, out, "engine.set_client_allowlist", enabled=arguments.enabled, ips=arguments.ips)


async def _transparent(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return await _set(crab, out, "engine.set_transparent", enabled=arguments.enabled, listen_port=arguments.port)


async def _upstream(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    changes: dict[str, object] = {}
    if arguments.proxy is not None:
        changes["proxy"] = "" if arguments.proxy.lower() in _NONE else arguments.proxy
    if arguments.bypass is not None:
        changes["bypass"] = [host for host in arguments.bypass if host.lower() not in _NONE]
    if arguments.ca_file is not None:
        changes["ca_file"] = "" if arguments.ca_file.lower() in _NONE else _absolute(arguments.ca_file)
    if arguments.insecure_host is not None:
        changes["insecure_hosts"] = [host for host in arguments.insecure_host if host.lower() not in _NONE]
    if arguments.client_cert is not None or arguments.no_client_certs:
        changes["client_certificates"] = [
            {"host": host, "cert_path": _absolute(cert), "key_path": _absolute(key)}
            for host, cert, key in arguments.client_cert or []
        ]
    _need(changes, "--proxy, --bypass, --ca-file, --insecure-host or --client-cert")
    return await _set(crab, out, "engine.set_upstream", **changes)


async def _policy(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    given = {"blocks_private_targets": arguments.block_private, "passes_through_pinned": arguments.pass_pinned}
    changes = {name: value for name, value in given.items() if value is not None}
    _need(changes, "--block-private on|off or --pass-pinned on|off")
    return await _set(crab, out, "engine.set_policy", **changes)


async def _set(crab: Crab, out: Output, method: str, **params: object) -> int:
    """Change it, and show the settings as they are now."""
    await crab.call(method, **params)
    return _print_config(await crab.call("engine.config_dump"), out)


def _need(changes: Mapping[str, object], options: str) -> None:
    if not changes:
        raise InvalidInput("nothing to change", f"give {options}")


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _print_config(config: dict[str, Any], out: Output) -> int:
    out.show(config, _lines(config))
    return 0


def _lines(config: dict[str, Any]) -> Iterator[str]:
    throttle, upstream = config["throttle"], config["upstream"]
    allowed = ("this machine", *config["client_allowlist"]["ips"])
    certificates = [one["host"] for one in upstream["client_certificates"]]
    yield from format_pairs(
        {
            "listen": f"{config['listen_addr']} ({'running' if config['running'] else 'stopped'})",
            "transparent": _or_off(config["transparent"], f"port {config['transparent']['listen_port']}"),
            "inspect bodies": config["inspect"]["enabled"],
            "throttle": _or_off(throttle, _link(throttle)),
            "clients": format_value(allowed) if config["client_allowlist"]["enabled"] else "all",
            "CA": config["ca"]["cert_path"] if config["ca"]["loaded"] else "none",
            "upstream proxy": upstream["proxy"] or "none",
            "without it": upstream["bypass"],
            "upstream roots": upstream["ca_file"] or "the system's",
            "not verified": upstream["insecure_hosts"],
            "client certs": certificates,
            "block private": config["blocks_private_targets"],
            "pass pinned": config["passes_through_pinned"],
        }
    )


def _or_off(setting: dict[str, Any], said: str) -> str:
    return said if setting["enabled"] else "off"


def _link(throttle: dict[str, Any]) -> str:
    rates = [f"{name} {throttle[member]} B/s" for name, member in _RATES if throttle[member]]
    latency = f"{throttle['latency_ms']} ms" + (f" ± {throttle['jitter_ms']}" if throttle["jitter_ms"] else "")
    hosts = f" for {format_value(throttle['selected_hosts'])}" if throttle["only_selected_hosts"] else ""
    return ", ".join((latency, *rates)) + hosts


_RATES = (("down", "downstream_bps"), ("up", "upstream_bps"))
