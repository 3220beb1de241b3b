"""`dari remote login` as it is installed: the command is a pipe, the daemon logs in, every later command uses it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.authorization_server import authority
from tests.support.oauth_users import get

pytestmark = pytest.mark.e2e
DARI = Path(sys.executable).parent / "dari"


async def start(home: Path, *words: str) -> asyncio.subprocess.Process:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DARI_HOME": str(home / "d"),
        # The daemon must not look for the keyring of whoever runs this test.
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    return await asyncio.create_subprocess_exec(
        *(str(DARI), "remote", *words),
        env=environ,
        cwd=home,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_a_login_through_the_daemon_serves_the_next_commands(tmp_path: Path) -> None:
    profiles = tmp_path / ".config/crewx/mcp.json"
    profiles.parent.mkdir(parents=True)
    try:
        async with authority() as them:
            profiles.write_text(
                json.dumps(
                    {
                        "servers": [
                            {"id": "notes", "url": them.resource_url, "auth": {"type": "oauth2", "allowPrivate": True}}
                        ]
                    }
                )
            )
            login = await start(tmp_path, "login", "notes")
            assert login.stdout is not None and login.stderr is not None
            told = ""
            while not (found := re.search(r"\n  (http://\S+)\n", told)):
                line = (await login.stderr.readline()).decode()
                assert line, told + (await login.stdout.read()).decode()
                told += line
            _, headers, _ = await get(found.group(1))
            _, _, page = await get(headers["location"])
            assert "Logged in" in page
            output, errors = await login.communicate()
            assert login.returncode == 0 and output.startswith(b"logged in to 'notes'"), errors.decode()
            them.expire()
            params = ("--params", '{"text": "abcd"}', "--raw")
            calls = [await start(tmp_path, "call-tool", "notes/demo_size", *params) for _ in range(3)]
            for call in calls:
                output, errors = await call.communicate()
                assert call.returncode == 0 and b'"4"' in output, errors.decode()
            assert (them.refreshes, len(them.authorizations)) == (1, 1)
            kept = tmp_path / "d" / "bridge" / "oauth"
            others = [path for path in (tmp_path / "d").rglob("*") if path.is_file() and kept not in path.parents]
            text = b"".join(path.read_bytes() for path in others) + told.encode()
            assert others and list(kept.glob("*.json"))
            assert not any(secret.encode() in text for secret in them.secrets_given)
    finally:
        stop = await start(tmp_path, "daemon", "stop")
        await stop.communicate()
