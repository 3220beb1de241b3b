"""Which folders a caller works in: those that a person named, those that its client has open, or its working folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dari.codetools.session import FindRoots
from dari.core.context import Context
from dari.errors import DariError, InvalidInput


def fixed_roots(roots: Sequence[Path]) -> FindRoots:
    """Always these: a person named them when the server was started."""

    async def find(context: Context) -> Sequence[Path]:
        return roots

    return find


def client_roots(cwd: Path | None) -> FindRoots:
    """The client's roots where it tells them, else `cwd`, the folder that the client was started in.

    A stateless client with a working folder is not asked: each question costs it a second request.
    """

    async def find(context: Context) -> Sequence[Path]:
        is_asked = "roots" in context.capabilities and not (context.is_stateless and cwd is not None)
        if is_asked and (listed := await _listed_by(context, must=cwd is None)):
            return listed
        if cwd is None:
            raise InvalidInput(
                "this client names no folder to work in",
                "connect over stdio (`dari mcp` or `crewx-tools serve`), or with a client that has roots",
            )
        return [cwd]

    return find


async def _listed_by(context: Context, *, must: bool) -> list[Path]:
    """The folders that exist; none where the client cannot be asked and there is another answer."""
    try:
        roots = await context.list_roots(key="roots")
    except DariError:
        if must:
            raise
        return []
    return [path for root in roots if (path := path_of_uri(str(root.get("uri", "")))) is not None and path.is_dir()]


def path_of_uri(uri: str) -> Path | None:
    """The path of a `file://` URI of this machine; None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "\0" in path or not os.path.isabs(path):
        return None
    return Path(path)
