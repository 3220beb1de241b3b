"""Kebab's failures: errors of `dari.errors` that know their code in `error.v1`, and the one classifier for every edge.

The command line and the MCP server both call `classify`; nothing else decides which code a failure has. The codes are
the enum of the shipped schema of `error.v1` (`wire.objects.ErrorCode`), which a test compares with this file.
"""

from __future__ import annotations

from dari.errors import (
    Conflict,
    DariError,
    Denied,
    Failed,
    InvalidInput,
    NeedsApproval,
    NotFound,
    TimedOut,
    Unavailable,
)

TYPE_CHECKING = False  # `import typing` costs 5 ms, and every command imports this
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from dari.knowledge.wire.objects import ErrorCode, ErrorV1


class KnowledgeError(DariError):
    """A failure with its code in `error.v1`, and facts for programs in `details`."""

    wire_code: ClassVar[ErrorCode] = "generic"

    def __init_subclass__(cls) -> None:
        cls.name = cls.wire_code  # by which kebabd's callers get the same error again

    def __init__(self, message: str, hint: str = "", **details: Any) -> None:
        super().__init__(message, hint)
        self.details = details


class ConfigInvalid(KnowledgeError, InvalidInput):
    """The configuration has a value or a key that is not understood."""

    wire_code = "config_invalid"


class ConfigNotFound(KnowledgeError, NotFound):
    """The configuration file that was named does not exist."""

    wire_code = "config_not_found"


class InvalidArgument(KnowledgeError, InvalidInput):
    """An argument of a command or a tool is wrong."""

    wire_code = "invalid_input"


class NotIndexed(KnowledgeError, NotFound):
    """Nothing has been ingested yet."""

    wire_code = "not_indexed"


class ModelUnreachable(KnowledgeError, Unavailable):
    """The server of a model does not answer."""

    wire_code = "model_unreachable"


class ModelNotInstalled(KnowledgeError, Unavailable):
    """The model is not on this machine, or its server does not have it."""

    wire_code = "model_not_pulled"


class StaleCursor(KnowledgeError, Conflict):
    """The corpus changed after the cursor was made."""

    wire_code = "stale_cursor"


class ReadonlyMode(KnowledgeError, Denied):
    """A write was asked for with `--readonly` or KEBAB_READONLY."""

    wire_code = "readonly_mode"


class DocNotFound(KnowledgeError, NotFound):
    """No document has that id or path."""

    wire_code = "doc_not_found"


class ChunkNotFound(KnowledgeError, NotFound):
    """No chunk has that id."""

    wire_code = "chunk_not_found"


class SpanNotSupported(KnowledgeError, InvalidInput):
    """The document has no lines, so it has no span of lines."""

    wire_code = "span_not_supported"


class IngestFatal(KnowledgeError, Failed):
    """The whole ingest ended, not one file of it."""

    wire_code = "ingest_fatal"


class IngestAssetError(KnowledgeError, Failed):
    """One file could not be ingested."""

    wire_code = "ingest_asset_error"


class StoreLocked(KnowledgeError, Conflict):
    """Another process writes to the store."""

    wire_code = "store_locked"


class StoreNewer(KnowledgeError, Conflict):
    """A newer version of kebab made the store."""

    wire_code = "store_newer"


class StoreDamaged(KnowledgeError, Failed):
    """The store cannot be read."""

    wire_code = "store_damaged"


_BY_CLASS: tuple[tuple[type[DariError], ErrorCode], ...] = (
    (InvalidInput, "invalid_input"),
    (NotFound, "not_found"),
    (NeedsApproval, "needs_approval"),
    (Denied, "denied"),
    (Conflict, "conflict"),
    (TimedOut, "timeout"),
    (Unavailable, "unavailable"),
)
DAMAGED_HINT = "restore a backup, or build it anew: kebab reset --data-only, then kebab ingest"
_SQLITE: dict[int, ErrorCode] = {5: "store_locked", 6: "store_locked", 11: "store_damaged", 26: "store_damaged"}
_SQLITE_HINTS: dict[ErrorCode, str] = {
    "store_locked": "another process writes to the store; try again",
    "store_damaged": DAMAGED_HINT,
}
_BUG = "this is a bug in kebab; the command with --verbose shows the traceback"


def error_types() -> list[type[KnowledgeError]]:
    """Every error of this file."""
    kinds: list[type[KnowledgeError]] = [KnowledgeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return kinds


def codes() -> frozenset[ErrorCode]:
    """Every code that `classify` can give."""
    kinds = error_types()
    listed = {kind.wire_code for kind in kinds} | {code for _, code in _BY_CLASS}
    return frozenset(listed | set(_SQLITE.values()) | {"io_error", "timeout", "generic"})


def is_bug(error: BaseException) -> bool:
    """Whether neither we nor the system raised it on purpose: only then a traceback says more than the message."""
    return not isinstance(error, (DariError, OSError)) and _store_code(error) is None and not _missing_package(error)


def classify(error: BaseException) -> ErrorV1:
    """The failure as `error.v1`. What neither we nor the system raised on purpose is `generic`."""
    from msgspec import UNSET

    from dari.knowledge.wire.objects import ErrorV1
    from dari.os_errors import from_os_error
    from dari.text.redact import redact_error

    if (found := _store_code(error)) is not None:
        return ErrorV1(code=found, message=str(error), hint=_SQLITE_HINTS[found])
    if package := _missing_package(error):
        from dari.installation import install_extra

        message = f"the Python package {package} is not installed"
        return ErrorV1(code="unavailable", message=message, hint=install_extra("knowledge"))
    if isinstance(error, TimeoutError) and error.errno is None:
        return ErrorV1(code="timeout", message=str(error) or "the time limit passed", hint="try again")
    refused = from_os_error(error)
    if refused is None:
        shown = redact_error(Failed(f"{type(error).__name__}: {error}", _BUG))
        return ErrorV1(code="io_error" if isinstance(error, OSError) else "generic", message=shown.message, hint=_BUG)
    shown = redact_error(refused)
    if not isinstance(error, DariError):
        return ErrorV1(code="io_error", message=shown.message, hint=shown.hint or UNSET)
    return ErrorV1(code=_code_of(error), message=shown.message, details=_details_of(error), hint=shown.hint or UNSET)


def _store_code(error: BaseException) -> ErrorCode | None:
    code = getattr(error, "sqlite_errorcode", None)
    return _SQLITE.get(code & 0xFF) if isinstance(code, int) else None


def _missing_package(error: BaseException) -> str:
    """The package of an extra that this installation lacks; a missing module of ours is a bug."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return "" if package == "dari" else package


def _code_of(error: DariError) -> ErrorCode:
    if isinstance(error, KnowledgeError):
        return error.wire_code
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), "generic")


def _details_of(error: DariError) -> dict[str, Any]:
    if isinstance(error, KnowledgeError):
        return error.details
    if isinstance(error, NeedsApproval) and error.approval_id:
        return {"approval_id": error.approval_id}
    return {}
