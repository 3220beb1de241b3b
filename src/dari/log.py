"""Logs go to stderr as `transport=… event=…`, so that stdout carries protocol only."""

from __future__ import annotations

import logging
import sys

LEVELS = ("debug", "info", "warning", "error")


def configure_logging(level: str = "info") -> None:
    """Send the logs of this process to stderr, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logger = logging.getLogger("dari")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    logging.raiseExceptions = False  # a log on a full disk loses its line; a traceback would stand among the others


def format_event(transport: str, name: str, detail: str = "") -> str:
    """A log line with the keywords of design 000, WS3."""
    return f"transport={transport} event={name}" + (f" {detail}" if detail else "")
