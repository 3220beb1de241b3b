"""Source files of a workspace as questions for the parser."""

from __future__ import annotations

import asyncio
from pathlib import PurePath

from dari.codetools.analyser import ParserFailed
from dari.codetools.session import CodeSession
from dari.codetools.workspace import Workspace, WorkspacePath
from dari.errors import DariError
from dari.syntax.analysis import AnalysisRequest, Answer
from dari.syntax.parsing import language_of

MAX_SOURCE_BYTES = 8 << 20


class NotParsed(Exception):
    """Why a file has no answer, in words for the caller."""


class NoGrammar(NotParsed):
    """It is not source code, or in a language that has no grammar here."""


async def ask_about(
    session: CodeSession, workspace: Workspace, path: WorkspacePath, name: str = "", *, wants_symbols: bool = True
) -> tuple[str, Answer]:
    """The language of a file and what the parser says of it; NotParsed when it says nothing."""
    try:
        data = await asyncio.to_thread(workspace.read, path, MAX_SOURCE_BYTES)
    except (DariError, OSError) as error:
        raise NotParsed(str(error)) from None
    return await ask_about_bytes(session, data, path.relative, name, wants_symbols=wants_symbols)


async def ask_about_bytes(
    session: CodeSession, data: bytes, path: str, name: str = "", *, wants_symbols: bool = True, wants_text: bool = True
) -> tuple[str, Answer]:
    if b"\0" in data[:8000]:
        raise NoGrammar("it is binary")
    language = language_of(PurePath(path), data[:200])
    if not language:
        raise NoGrammar("neither its name nor its first line says a language")
    try:
        answer = await session.analyser.ask(
            AnalysisRequest(data, language, name, wants_symbols, wants_text=wants_symbols and wants_text)
        )
    except ParserFailed as error:
        raise NotParsed(str(error)) from None
    if answer.is_unknown:
        raise NoGrammar(f"no grammar of {language} is installed (extra: dari[codetools])")
    return language, answer


def parser_version() -> str:
    """Such as `tree-sitter 0.25.2`."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"tree-sitter {version('tree-sitter')}"
    except PackageNotFoundError:
        return "tree-sitter"
