"""Who answers on our ports: nobody, one of us that proves it, or somebody who must not be sent a token."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dari.system.check import Check, worst_status
from dari.transport.bind import url_port
from dari.transport.identity import hub_on, identify

LOOPBACK = ("127.0.0.1", "::1")


def check_ports(socket_path: Path, usual_port: int, tokens: Mapping[str, Path]) -> Check:
    """The usual port and, where a hub runs, the hub's; on both loopback addresses, because `localhost` is either."""
    served = hub_on(socket_path)
    known = dict(tokens)
    ports = [usual_port]
    if served is not None and served.url:
        known["the hub"] = Path(served.token_path)
        ports = list(dict.fromkeys((url_port(served.url), usual_port)))
    found = [_at(host, port, known) for port in ports for host in LOOPBACK]
    told = [check for check in found if check is not None]
    if not told:
        return Check("port", "ok", f"127.0.0.1:{usual_port} is free")
    status = worst_status(told)
    hint = next((check.hint for check in told if check.status == status), "")
    return Check("port", status, "; ".join(check.found for check in told), hint)


def _at(host: str, port: int, tokens: Mapping[str, Path]) -> Check | None:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    answerer = identify(host, port, tokens.values())
    if answerer is None:
        return None
    if answerer.token_path is not None:
        name = next(name for name, path in tokens.items() if path == answerer.token_path)
        return Check("port", "ok", f"{address} is {name}, which proved that it holds {answerer.token_path}")
    renew = "if a client has sent its token there, remove the token file and restart the server"
    if answerer.uid == os.geteuid():
        hint = f"send no token to {address}; stop that program, or choose another port with --http-port; {renew}"
        return Check("port", "warning", f"{address} is another program of yours, not one of ours", hint)
    whose = "of a user that cannot be found out" if answerer.uid is None else f"of uid {answerer.uid}"
    hint = f"send no token to {address}: point clients at the address that `dari up` prints; {renew}"
    return Check("port", "failed", f"{address} is answered by a program {whose}, not by one of ours", hint)
