"""URLs as they were sent, which is not always as they should be."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlsplit


def split_url(url: str) -> SplitResult:
    """Like `urlsplit`, but `http://[oops` is one odd path instead of an error."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", url, "", "")


def query_pairs(url: str) -> list[tuple[str, str]]:
    """The fields of the query in order."""
    return parse_qsl(split_url(url).query, keep_blank_values=True)
