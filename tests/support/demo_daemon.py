"""The demo daemon as a process: `demo_daemon.py RUN_DIR`. Every start leaves one line in its log."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dari.daemon.methods import Method
from dari.daemon.paths import DaemonPaths
from dari.daemon.server import DaemonServer
from dari.errors import DariError


async def environment(_: dict[str, object]) -> object:
    return dict(os.environ)


async def main(run_dir: Path) -> None:
    print(f"started {os.getpid()}", flush=True)
    await DaemonServer(DaemonPaths("demo", run_dir), [Method("demo.environment", "read", environment)]).serve()


try:
    asyncio.run(main(Path(sys.argv[1])))
except DariError as error:
    sys.exit(error.message)
