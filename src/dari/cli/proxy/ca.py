"""`dari proxy ca …`: the certificate authority."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dari.cli.kit.console import Output
from dari.cli.kit.table import format_pairs, one_line
from dari.cli.proxy.crab import Crab
from dari.cli.proxy.options import Commands, for_shell, group, leaf
from dari.errors import Failed
from dari.os_errors import describe_os_error, suggest_next_step

_CA = """
dari proxy ca                                     is there one, until when, how to trust it
dari proxy ca generate                            make one; clients must trust it
dari proxy ca export ca.pem                       the certificate, for a browser or a device
"""
_GENERATE = """
dari proxy ca generate
dari proxy ca generate --key-type rsa2048 --days 365      for clients that know no elliptic curves
dari proxy ca generate --replace                          every client must trust the new one
"""
_EXPORT = """
dari proxy ca export > ca.pem
dari proxy ca export ca.pem
"""
_LOAD = """
dari proxy ca load ~/company-ca.pem ~/company-ca.key      PEM, both
"""


def add_ca(commands: Commands[argparse.ArgumentParser], help: str) -> None:
    words = group(commands, "ca", help, _CA)
    parser = leaf(words, "generate", _generate, "make a CA and sign with it at once", _GENERATE)
    parser.add_argument("--name", default="Crab Proxy CA", help="its common name (default: %(default)s)")
    parser.add_argument("--days", type=int, default=3650, help="default: %(default)s")
    parser.add_argument("--key-type", choices=("ec", "rsa2048", "rsa4096"), default="ec", help="default: %(default)s")
    parser.add_argument("--replace", action="store_true", help="even when one is loaded")
    leaf(words, "status", _status, "the CA that is loaded", _CA)
    parser = leaf(words, "export", _export, "the certificate as PEM; the key stays where it is", _EXPORT)
    parser.add_argument("file", metavar="FILE", nargs="?", help="default: stdout")
    parser = leaf(words, "load", _load, "sign with a CA of your own", _LOAD)
    parser.add_argument("cert", metavar="CERT")
    parser.add_argument("key", metavar="KEY")


async def _generate(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    made = await crab.call(
        "ca.generate",
        name=arguments.name,
        days=arguments.days,
        key_type=arguments.key_type,
        replace=arguments.replace,
    )
    return _print_status(made, out)


async def _status(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    return _print_status(await crab.call("ca.status"), out)


def _print_status(status: dict[str, Any], out: Output) -> int:
    status["install"] = [for_shell(line) for line in status["install"]]
    out.show(status, _status_lines(status))
    if not out.as_json:
        for text in status["warnings"]:
            out.warn(one_line(text))
    return 0


def _status_lines(status: dict[str, Any]) -> Iterator[str]:
    if status["loaded"]:
        yield from format_pairs(
            {
                "certificate": status["cert_path"],
                "subject": status["subject"],
                "SHA-256": status["sha256"],
                "key": status["key_type"],
                "ends": f"{status['not_after']} ({status['days_left']} days left)",
            }
        )
    else:
        yield "No CA is loaded"
    yield from (f"  {one_line(line)}" for line in status["install"])


async def _export(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    found = await crab.call("ca.export")
    if arguments.file is None:
        out.show(found, [found["pem"].rstrip()])
        return 0
    path = Path(arguments.file)
    try:
        path.write_text(found["pem"])
    except OSError as error:
        raise Failed(
            f"cannot write {path}: {describe_os_error(error)}", suggest_next_step(error, "name another file")
        ) from error
    out.show({**found, "path": str(path)}, [f"{path} has the certificate, SHA-256 {found['sha256']}"])
    return 0


async def _load(arguments: argparse.Namespace, crab: Crab, out: Output) -> int:
    cert, key = (str(Path(path).expanduser().absolute()) for path in (arguments.cert, arguments.key))
    await crab.call("engine.load_ca", cert_path=cert, key_path=key)
    return _print_status(await crab.call("ca.status"), out)
