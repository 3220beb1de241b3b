"""Programs that are told of the proxy and its CA by environment variables alone, those of `client_environment`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dari.proxy.client_environment import trusted_roots, variables
from tests.support.proxy_lab import OURS, lab, run

HERE = Path(__file__).parent
HTTPX = "import httpx, sys; print(httpx.get(sys.argv[1]).text, end='')"
REQUESTS = "import requests, sys; print(requests.get(sys.argv[1]).text, end='')"
URLLIB = "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"
COMMANDS = {
    "curl": ["curl", "-q", "-sS"],
    "httpx": [sys.executable, "-c", HTTPX],
    "requests": [sys.executable, "-c", REQUESTS],
    "urllib": [sys.executable, "-c", URLLIB],
    "node": ["node", str(HERE / "env_client.mjs")],
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", COMMANDS)
async def test_a_program_needs_nothing_but_the_variables(
    name: str, scheme: str, program: Callable[[str], str], tmp_path: Path
) -> None:
    first, *rest = COMMANDS[name]
    command = [program(first) if first in ("curl", "node") else first, *rest]
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(trusted_roots(OURS.pem))
    async with lab(tmp_path) as here:
        env = variables(f"127.0.0.1:{here.port}", str(here.ca_file), str(bundle))
        ran = await run([*command, here.url("/hello", scheme)], {"PATH": os.environ["PATH"], **env})
        assert ran.code == 0, ran.errors
        assert ran.out.strip() == b"0123456789"
        flow = await here.memory.flow()
        assert (flow.url, flow.status) == (here.url("/hello", scheme), 200)
