"""Who is measured: ours as `pip install` leaves it, the peers at pinned versions (npm: tools/devtools/bench.py)."""

from collections.abc import Callable, Sequence

from bench.bridge.upstreams import MODULES, NODE
from bench.machine import ROOT
from bench.peers import PEERS, Peer, install
from bench.programs import Contender, python_package, said

FASTMCP = next(peer for peer in PEERS if peer.name == "fastmcp")
# Constraints of ours would ask for a newer SDK than it runs with.
MCP_PROXY = Peer("mcp-proxy", ("mcp-proxy==0.13.0",), is_constrained=False)
MCP_PROXY_TUNED = Peer("mcp-proxy-tuned", ("mcp-proxy==0.13.0", "httptools"), is_constrained=False)


def _npm_package(name: str) -> Callable[[], str]:
    script = f"console.log('{name} ' + require('{MODULES}/{name}/package.json').version + ', node ' + process.version)"
    return lambda: said([str(NODE), "-e", script])


BIN = ROOT / ".venv" / "bin"
_INSPECTOR = "@modelcontextprotocol/inspector"
_fastmcp = python_package(FASTMCP.python, "fastmcp", "mcp")

OURS = Contender("dari", "Dari", BIN / "crewx", python_package(BIN / "python", "dari"))
MCPORTER = Contender("mcporter", "mcporter", MODULES / "mcporter" / "dist" / "cli.js", _npm_package("mcporter"))
MCPDO = Contender(
    "mcpdo", "mcpdo", MODULES / _INSPECTOR / "clients" / "mcpdo" / "build" / "mcp-bin.js", _npm_package(_INSPECTOR)
)
PROXY = Contender(
    "mcp-proxy",
    "mcp-proxy",
    MCP_PROXY.home / "bin" / "mcp-proxy",
    python_package(MCP_PROXY.python, "mcp-proxy", "mcp", "uvicorn"),
)
PROXY_TUNED = Contender(
    "mcp-proxy-tuned",
    "mcp-proxy with httptools",
    MCP_PROXY_TUNED.home / "bin" / "mcp-proxy",
    python_package(MCP_PROXY_TUNED.python, "mcp-proxy", "mcp", "uvicorn", "httptools"),
)
FASTMCP_RUN = Contender("fastmcp-run", "fastmcp run", FASTMCP.home / "bin" / "fastmcp", _fastmcp)
FASTMCP_SHARED = Contender("fastmcp-shared", "FastMCP, shared session", FASTMCP.python, _fastmcp)
SUPERGATEWAY = Contender(
    "supergateway", "supergateway", MODULES / "supergateway" / "dist" / "index.js", _npm_package("supergateway")
)

CONTENDERS = (OURS, MCPORTER, MCPDO, PROXY, PROXY_TUNED, FASTMCP_RUN, FASTMCP_SHARED, SUPERGATEWAY)


def present(wanted: Sequence[Contender]) -> list[Contender]:
    return [contender for contender in wanted if not contender.missing]


def install_peers() -> None:
    for peer in (FASTMCP, MCP_PROXY, MCP_PROXY_TUNED):
        install(peer)
