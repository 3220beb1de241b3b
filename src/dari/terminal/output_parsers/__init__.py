"""Rendered terminal text read as data: `parse_structured` for its shape, `detect_intent` for what happened."""

from dari.terminal.output_parsers.intents import Evidence, Intent, detect_intent
from dari.terminal.output_parsers.registry import parse_structured, parser_names
from dari.terminal.output_parsers.result import Parsed

__all__ = ["Evidence", "Intent", "Parsed", "detect_intent", "parse_structured", "parser_names"]
