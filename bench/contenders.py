"""Who is measured: every server is a module with one command line, in its own environment."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.machine import ROOT
from bench.peers import PEERS, install


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    title: str
    python: Path
    packages: tuple[str, ...]
    speaks_mcp: bool = True

    @property
    def module(self) -> str:
        return f"bench.servers.{self.name}_server"

    @property
    def missing(self) -> str:
        """Why its server cannot start, or an empty string."""
        return _absent(self.python, ROOT / "bench" / "servers" / f"{self.name}_server.py")

    @property
    def client_missing(self) -> str:
        """Why its client cannot start, or an empty string."""
        return _absent(self.python, ROOT / "bench" / "drivers" / f"{self.name}_client.py")

    def command(self, transport: str, token_path: Path, port: int = 0, tools: int = 1) -> list[str]:
        return [
            *(str(self.python), "-m", self.module, "--transport", transport),
            *("--http-port", str(port), "--token-path", str(token_path), "--tools", str(tools)),
        ]


OURS = Contender("dari", "Dari", ROOT / ".venv" / "bin" / "python", ("dari", "uvicorn", "msgspec"))
SDK = Contender("sdk", "official SDK", PEERS[0].python, ("mcp", "uvicorn", "uvloop", "httptools"))
FASTMCP = Contender("fastmcp", "FastMCP", PEERS[1].python, ("fastmcp", "mcp"))
ASGI = Contender("asgi", "bare ASGI echo", PEERS[2].python, ("uvicorn", "msgspec"), speaks_mcp=False)

CONTENDERS = (OURS, SDK, FASTMCP, ASGI)


def present(wanted: Iterable[Contender]) -> list[Contender]:
    return [contender for contender in wanted if not contender.missing]


def install_peers() -> None:
    for peer in PEERS:
        install(peer)


def _absent(*needs: Path) -> str:
    return next((f"{need.relative_to(ROOT)} does not exist" for need in needs if not need.exists()), "")
