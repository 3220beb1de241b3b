"""The command line that all servers of the benchmark share; no import beyond the standard library."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arguments:
    transport: str
    http_port: int
    token_path: str
    tools: int


def parse() -> Arguments:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=("stdio", "http"), required=True)
    parser.add_argument("--http-port", type=int, default=0)
    parser.add_argument("--token-path", default="", help="bearer token; the peers do not look at it")
    parser.add_argument("--tools", type=int, choices=(1, 32), default=1)
    given = parser.parse_args()
    return Arguments(given.transport, given.http_port, given.token_path, given.tools)
