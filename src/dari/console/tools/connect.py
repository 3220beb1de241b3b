"""`dari_connect`: how a client is set up for this hub, with the real address, paths and token."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from dari.bridge.config.importers.sources import source_files
from dari.bridge.config.locations import ClientEnvironment
from dari.core.scopes import ADMIN
from dari.core.tool import tool
from dari.transport.client_tokens import SHARED

if TYPE_CHECKING:
    from dari.console.backends import ConsoleBackends

Client = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]
Transport = Literal["http", "stdio"]
MASK = "••••••••"
BY = "console"
_SERVER = "dari"


class ConnectForm(Struct, frozen=True, kw_only=True):
    """One way to tell a client: a command to run, or an entry for a file."""

    transport: Transport
    path: str = ""
    """The client's own file for this user; empty: `text` is a command for a shell."""
    language: Literal["sh", "json", "toml"]
    text: str


class ConnectGuide(Struct, frozen=True, kw_only=True):
    client: Client
    url: str
    token: str
    """The name of the token."""
    is_masked: bool
    forms: list[ConnectForm]


class ConnectTools:
    """The tool `dari_connect`."""

    prefix = "dari"

    def __init__(self, backends: ConsoleBackends) -> None:
        self._backends = backends

    @tool(scope=ADMIN, read_only=True, output="as_is")
    async def connect(
        self,
        client: Annotated[Client, Meta(description="The program to connect")],
        token: Annotated[str, Meta(description="Name of the token to put in; dari_tokens_list has them")] = SHARED,
        with_secret: Annotated[bool, Meta(description="Write the secret out, to copy it; else it is masked")] = False,
    ) -> ConnectGuide:
        """Return what to run or to write so that a client uses this hub, over HTTP and over stdio."""
        secret = (await self._backends.tokens.show(token, BY)).secret if with_secret else MASK
        url, command = self._backends.url(), dari_command()
        path = str(_own_file(client))
        return ConnectGuide(
            client=client,
            url=url,
            token=token,
            is_masked=not with_secret,
            forms=forms(client, path, url, secret, command, is_named=token != SHARED),
        )


def forms(client: Client, path: str, url: str, secret: str, command: str, *, is_named: bool) -> list[ConnectForm]:
    """Claude Desktop starts programs only: its settings know no address with a header. Over stdio only a token of the
    client's own says something, and it is a variable of the environment there."""
    header = {"Authorization": f"Bearer {secret}"}
    local: dict[str, Any] = {"command": command, "args": ["mcp"]}
    if is_named:
        local["env"] = {"DARI_CLIENT_TOKEN": secret}
    match client:
        case "claude-code":
            shown = shlex.quote(f"Authorization: Bearer {secret}")
            http = f"claude mcp add --transport http --scope user {_SERVER} {url} --header {shown}"
            # Not right before the name: --env takes all the words that follow it.
            env = f"--env DARI_CLIENT_TOKEN={secret} " if is_named else ""
            return [
                ConnectForm(transport="http", language="sh", text=http),
                ConnectForm(
                    transport="stdio",
                    language="sh",
                    text=f"claude mcp add {env}--scope user {_SERVER} -- {shlex.quote(command)} mcp",
                ),
            ]
        case "claude-desktop":
            return [_json("stdio", path, "mcpServers", local)]
        case "cursor":
            remote = {"url": url, "headers": header}
            return [_json("http", path, "mcpServers", remote), _json("stdio", path, "mcpServers", local)]
        case "vscode":
            remote = {"type": "http", "url": url, "headers": header}
            return [_json("http", path, "servers", remote), _json("stdio", path, "servers", {"type": "stdio", **local})]
        case "gemini":
            remote = {"httpUrl": url, "headers": header}
            return [_json("http", path, "mcpServers", remote), _json("stdio", path, "mcpServers", local)]
        case "codex":
            head = f"[mcp_servers.{_SERVER}]\n"
            remote_text = (
                f"{head}url = {_toml(url)}\nhttp_headers = {{ Authorization = {_toml(f'Bearer {secret}')} }}\n"
            )
            env = f"env = {{ DARI_CLIENT_TOKEN = {_toml(secret)} }}\n" if is_named else ""
            local_text = f'{head}command = {_toml(command)}\nargs = ["mcp"]\n{env}'
            return [
                ConnectForm(transport="http", path=path, language="toml", text=remote_text),
                ConnectForm(transport="stdio", path=path, language="toml", text=local_text),
            ]


def dari_command() -> str:
    """The full path of our own command: clients look in other places than a shell does."""
    beside = Path(sys.executable).parent / "dari"
    return str(beside) if beside.exists() else shutil.which("dari") or "dari"


def _own_file(client: Client) -> Path:
    """The file of the client that counts for this user, in every folder."""
    return next(one.path for one in source_files(client, ClientEnvironment.of_process()) if one.project is None)


def _json(transport: Transport, path: str, member: str, entry: dict[str, Any]) -> ConnectForm:
    text = msgspec.json.format(msgspec.json.encode({member: {_SERVER: entry}}), indent=2).decode()
    return ConnectForm(transport=transport, path=path, language="json", text=text + "\n")


def _toml(text: str) -> str:
    """A basic string of TOML, which is spelled like one of JSON."""
    return msgspec.json.encode(text).decode()
