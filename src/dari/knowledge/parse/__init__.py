"""File bytes to documents. A parser knows its format and nothing of stores; see `chunk` for what is made of it."""

from dari.knowledge.parse.detect import HEAD_BYTES, media_of
from dari.knowledge.parse.dispatch import default_title, parse_bytes, parse_file
from dari.knowledge.parse.limits import ParseFailed, ParseLimits
from dari.knowledge.parse.pool import ParserPool
from dari.knowledge.parse.versions import parser_version

__all__ = [
    "HEAD_BYTES",
    "ParseFailed",
    "ParseLimits",
    "ParserPool",
    "default_title",
    "media_of",
    "parse_bytes",
    "parse_file",
    "parser_version",
]
