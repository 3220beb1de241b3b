"""A port as an argument of several commands."""

from __future__ import annotations

import argparse


def port_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no port; use a number from 0 to 65535 (0: any free one)")
    return int(text)
