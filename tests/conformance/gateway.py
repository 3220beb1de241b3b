"""The gateway in front of the conformance fixtures: `python -m tests.conformance.gateway --home <folder>`.

The parts of `dari up`, and its address for one server under its own names; no token, because the suite has none.
The fixtures run as a child, or stand at the address that `--upstream` names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from dari import log
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.gateway.endpoints import GatewayEndpoints, ServerOptions
from dari.bridge.service import Bridge
from dari.runtime import run_to_exit
from dari.settings import ServeSettings
from dari.transport.supervisor import TransportSupervisor
from tests.conformance.everything import announce
from tests.conformance.suite import ROOT

NAME = "fixtures"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="a folder of this run")
    parser.add_argument("--upstream", help="URL of the fixtures (default: they are a child)")
    parser.add_argument("--protocol", choices=("auto", "legacy"), default="auto", help="the era of the upstream")
    parser.add_argument("--isolation", choices=("shared", "per-client", "per-call"), default="shared")
    given = parser.parse_args()
    os.environ["DARI_HOME"] = str(given.home / "dari")
    log.configure_logging("warning")
    profiles = given.home / "mcp.json"
    entry = {**_entry(given.upstream), "protocol": given.protocol, "isolation": given.isolation}
    profiles.write_text(json.dumps({"mcpServers": {NAME: entry}}))
    profiles.chmod(0o600)
    around = ClientEnvironment(given.home, given.home, {**os.environ, "CREWX_MCP_JSON": str(profiles)}, sys.platform)

    async def serve() -> int:
        settings = ServeSettings(transport="http", http_port=0, token_path=None)
        async with Bridge() as bridge:
            fronts = GatewayEndpoints(bridge.view(around), ServerOptions(approvals=bridge.approvals))
            hub = TransportSupervisor(fronts.main.server, settings, announce=_announce_one, find_server=fronts.find)
            fronts.start()
            try:
                return await hub.run()
            finally:
                await fronts.close()

    return run_to_exit(serve)


def _announce_one(url: str, token_path: str) -> None:
    announce(f"{url.removesuffix('/mcp')}/s/{NAME}/mcp", token_path)


def _entry(url: str | None) -> dict[str, object]:
    """The suite wants to be asked for its roots; a profile that does not say so keeps a server from that."""
    if url is not None:
        return {"type": "http", "url": url, "roots": "client"}
    words = ["-m", "tests.conformance.everything", "--transport", "stdio"]
    return {"command": sys.executable, "args": words, "cwd": str(ROOT), "roots": "client"}


if __name__ == "__main__":
    raise SystemExit(main())
