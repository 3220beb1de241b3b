"""A whole proxy in this process: engine, rules, traffic, state on disk; and clients that use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dari.proxy.api.service import ProxyService, local_service
from dari.proxy.api.traffic import TrafficApi
from dari.proxy.local_files import LocalFiles
from dari.proxy.recording.recording import Recording
from dari.proxy.runtime import ProxyRuntime
from dari.proxy.state_files import StateFiles
from tests.support.proxy_engine import Reply, request
from tests.support.proxy_engine import wire as engine_wire


@dataclass
class Rig:
    runtime: ProxyRuntime
    service: ProxyService

    @property
    def port(self) -> int:
        bound = self.runtime.engine.address
        assert bound is not None
        return bound[1]

    async def get(self, url: str, *headers: str, method: str = "GET", body: bytes = b"") -> Reply:
        """One request on a connection of its own."""
        async with engine_wire(self.runtime.engine) as wire:
            length = (f"Content-Length: {len(body)}",) if body else ()
            await wire.send(request(url, *length, *headers, method=method, body=body))
            return await wire.reply(method)


@asynccontextmanager
async def proxy(directory: Path, *, starts: bool = True, roots: tuple[str, ...] = ()) -> AsyncIterator[Rig]:
    runtime = await ProxyRuntime.open(directory / "state", local_files=LocalFiles((*roots, str(directory))))
    rig = Rig(runtime, local_service(runtime))
    try:
        await rig.service.settings.set_listen_addr("127.0.0.1:0")
        if starts and not runtime.engine.is_running:
            await rig.service.control.start()
        yield rig
    finally:
        await runtime.close()


def traffic_of(recording: Recording, folder: Path) -> TrafficApi:
    """The api of recorded traffic, of a proxy that does not run; it may write files to the folder."""
    return TrafficApi(ProxyRuntime(StateFiles(folder / "state"), recording, LocalFiles((str(folder),))))
