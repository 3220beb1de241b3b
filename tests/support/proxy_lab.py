"""A site over http and one over https, with a decrypting engine before them, and a check that nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dari.proxy.ca import CertificateAuthority
from dari.proxy.engine.config import EngineConfig
from dari.proxy.engine.hooks import Decision, NoRules
from dari.proxy.engine.listener import ProxyEngine
from dari.proxy.flow import Flow
from tests.support.leftovers import nothing_left
from tests.support.origins.origin import Origin, origin
from tests.support.proxy_engine import FAST, Memory, proxy
from tests.support.proxy_site import Site
from tests.support.waiting import until

OURS = CertificateAuthority.generate()
THEIRS = CertificateAuthority.generate("the origins' CA")
# The site speaks HTTP/1.1 only, and says so.
THEIRS.alpn = ["http/1.1"]
PROGRAM_S = 40.0


class LocalOnly(NoRules):
    """What a browser asks of its maker's hosts goes nowhere, and is no flow."""

    def decide(self, flow: Flow) -> Decision:
        if flow.authority.partition(":")[0] not in ("localhost", "127.0.0.1"):
            return Decision(is_recorded=False, block_status=403)
        return super().decide(flow)


@dataclass
class Lab:
    engine: ProxyEngine
    memory: Memory
    site: Site
    plain: Origin
    secure: Origin
    ca_file: Path
    """What a client must trust to be decrypted."""
    origin_ca_file: Path

    @property
    def port(self) -> int:
        assert self.engine.address is not None
        return self.engine.address[1]

    @property
    def proxy_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str, scheme: str = "http") -> str:
        port = self.plain.port if scheme == "http" else self.secure.port
        return f"{scheme}://localhost:{port}{path}"

    def there(self, scheme: str) -> Origin:
        return self.plain if scheme == "http" else self.secure

    async def flow(self, path: str) -> Flow:
        """The newest finished flow of this path."""

        def found() -> list[Flow]:
            return [flow for flow in self.memory.done if flow.target.partition("?")[0] == path]

        await self.memory.until(lambda: bool(found()))
        return found()[-1]


@asynccontextmanager
async def lab(directory: Path, *, decrypts: bool = True, config: EngineConfig = FAST) -> AsyncIterator[Lab]:
    ca_file, roots = directory / "proxy-ca.pem", directory / "origin-ca.pem"
    ca_file.write_bytes(OURS.pem)
    roots.write_bytes(THEIRS.pem)
    site, memory = Site(), Memory()
    config = replace(config, ca_file=str(roots))
    tls = THEIRS.context_for("localhost")
    async with nothing_left(), origin(site) as plain, origin(site, tls) as secure:
        async with proxy(config, memory, rules=LocalOnly(decrypts), authority=OURS) as engine:
            yield Lab(engine, memory, site, plain, secure, ca_file, roots)
            await until(lambda: engine.connection_count == 0, lambda: f"{engine.connection_count} connections")
        await until(lambda: len(memory.done) == len(memory.flows), lambda: unfinished(memory))


def unfinished(memory: Memory) -> list[str]:
    return [f"{flow.method} {flow.url} {flow.state}" for flow in memory.flows if flow.state != "done"]


@dataclass
class Ran:
    code: int
    out: bytes
    errors: str


async def run(words: Sequence[str], env: dict[str, str] | None = None, stdin: bytes | None = None) -> Ran:
    """A program to its end, killed when it takes longer than PROGRAM_S."""
    async with started(words, env, reads=stdin is not None) as process:
        async with asyncio.timeout(PROGRAM_S):
            out, errors = await process.communicate(stdin)
        assert process.returncode is not None
        return Ran(process.returncode, out, errors.decode("utf-8", "replace"))


@asynccontextmanager
async def started(
    words: Sequence[str], env: dict[str, str] | None = None, reads: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *words, env=env, stdin=pipe if reads else nothing, stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # What was not read would keep its pipes open.
        process._transport.close()  # type: ignore[attr-defined]
