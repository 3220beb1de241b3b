"""`kebab mcp`: the MCP server of design 004 on stdin and stdout. Its only option is `--config`."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # `import typing` costs 5 ms
if TYPE_CHECKING:
    from dari.knowledge.service import KnowledgeService, ServiceCache

USAGE = """\
usage: kebab mcp [--config FILE]

Serves one agent over stdin and stdout: the tools search, ask, schema and doctor. All else is set by the configuration,
and by the environment, which wins:

  KEBAB_TOOLS=all                 also bulk_search, fetch, list_docs, inspect_chunk, ingest_file, ingest_stdin
  KEBAB_CONFIG=FILE               the configuration, as --config
  KEBAB_<SECTION>_<KEY>=VALUE     one setting, such as KEBAB_LLM_ENDPOINT=http://127.0.0.1:11434/v1
  KEBAB_READONLY=1                refuse whatever writes

Claude Code:
  claude mcp add kebab -- kebab mcp
Cursor, Claude Desktop and others, in mcp.json:
  "kebab": {"command": "kebab", "args": ["mcp"]}

Logs go to stderr and to the log folder. Guide: docs/guide/kebab-tools.md
"""


def main(words: list[str]) -> int:
    """Serve until stdin ends."""
    config: str | None = None
    while words:
        word, *words = words
        if word in ("-h", "--help"):
            sys.stdout.write(USAGE)
            return 0
        if word == "--config" and words:
            config, *words = words
        elif word.startswith("--config="):
            config = word.partition("=")[2]
        else:
            sys.stderr.write(
                f"error: kebab mcp takes --config FILE and nothing else, got {word!r}\nhint: kebab mcp --help\n"
            )
            return 2
    # Importing makes no garbage; looking for some costs a tenth of the start. `run_to_exit` turns it on again.
    gc.disable()
    from dari.runtime import run_to_exit

    _configure_logs()
    return run_to_exit(lambda: _serve(config))


async def _serve(config: str | None) -> int:
    import logging
    from threading import Lock

    from dari.core.audit.spool import process_spool
    from dari.knowledge.api import KnowledgeApi
    from dari.knowledge.tools.server import build_server
    from dari.settings import ServeSettings
    from dari.transport.supervisor import TransportSupervisor

    opening = Lock()
    opened: list[ServiceCache] = []
    logger = logging.getLogger("dari")

    def service() -> KnowledgeService:
        # In the thread of the first call: a configuration that cannot be read is that call's error, not the server's.
        with opening:
            if not opened:
                from dari.knowledge.service import ServiceCache

                opened.append(ServiceCache())
        found = opened[0].get(config, os.environ, False)
        logger.setLevel(found.settings.config.logging.level.upper())
        return found

    api, spool = KnowledgeApi(service), process_spool()
    try:
        return await TransportSupervisor(
            build_server(api, spool, config=config), ServeSettings(transport="stdio")
        ).run()
    finally:
        api.close()
        spool.close()


def _configure_logs() -> None:
    """stdout carries the protocol: logs go to stderr, and to a file where one can be written. The level is set when the
    settings are read."""
    import logging

    from dari import log

    log.configure_logging()
    try:
        from logging.handlers import RotatingFileHandler

        from dari.knowledge.paths import logs_dir
        from dari.paths import private_dir

        folder = private_dir(logs_dir(os.environ))
        handler = RotatingFileHandler(
            folder / "mcp.log", maxBytes=1_000_000, backupCount=2, delay=True, encoding="utf-8"
        )
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        logging.getLogger("dari").addHandler(handler)
    except Exception as error:
        logging.getLogger("dari").warning("kebab event=no_log_file: %s", error)
