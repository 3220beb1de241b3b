"""`kebab init`, `kebab config migrate` and `kebab reset`."""

from __future__ import annotations

import argparse

from msgspec import UNSET

from dari.cli.kebab.context import ERROR, OK, KebabContext, print_wire
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_size
from dari.errors import InvalidInput
from dari.knowledge.backend import open_backend
from dari.knowledge.config import StoreSettings, check_store_url, load_settings
from dari.knowledge.config_file import init_config, migrate_config
from dari.knowledge.errors import ReadonlyMode
from dari.knowledge.paths import config_file
from dari.knowledge.wire.reports import InitReportV1

_SCOPES = {
    "all": "documents, index, vectors, models and the configuration",
    "data-only": "documents, index and vectors; models and configuration stay",
    "vector-only": "vectors; the next ingest makes them again",
    "config-only": "the configuration",
    "orphans-only": "documents whose file is gone, and files without a document",
}


def _add_init(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", nargs="?", help="the folder to index (default: none; add one to the file)")
    add(
        "--store",
        metavar="URL",
        help="keep it in PostgreSQL instead of the data folder: postgresql://user@host/database",
    )
    add("--force", action="store_true", help="replace a configuration that exists")


async def _run_init(arguments: argparse.Namespace, context: KebabContext) -> int:
    if context.is_readonly:
        raise ReadonlyMode(
            "kebab init writes a file, and --readonly or KEBAB_READONLY forbids it", "run it without them"
        )
    path = config_file(context.config, context.environ)
    root = context.resolve(arguments.folder).resolve() if arguments.folder else None
    if root is not None and not root.is_dir():
        raise InvalidInput(f"the folder must exist, got {root}", "make it, or name another one")
    store_url = arguments.store or ""
    check_store_url(store_url, "--store")
    if store_url:
        await context.call(_reach, store_url)
    backup = await context.call(init_config, path, root=str(root or ""), store_url=store_url, force=arguments.force)
    settings = load_settings(str(path), context.environ)
    made = InitReportV1(
        config=str(path),
        root=str(root) if root else None,
        data=str(settings.data.data),
        store=open_backend(settings).place if settings.config.store.url else UNSET,
    )
    if context.as_json:
        print_wire(context, made)
        return OK
    context.output.text(f"configuration  {path}", f"data           {settings.data.data}")
    if made.store is not UNSET:
        context.output.text(f"store          {made.store}")
    if backup:
        context.note(f"the file as it was: {backup}")
    then = "next: kebab ingest" if root else f"next: set [workspace] root in {path}, then kebab ingest"
    context.note(context.rewrite(then))
    return OK


def _reach(store_url: str) -> None:
    """Try the login before the file is written. Nothing is made on the server yet."""
    from contextlib import closing

    from dari.knowledge.postgres_backend import PostgresBackend

    with closing(PostgresBackend(StoreSettings(url=store_url))) as backend:
        backend.exists()


def _add_config(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    migrating = words.add_parser("migrate", help="bring the file to this version; the old one is kept beside it")
    migrating.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    words.add_parser("path", help="print where the file is")


async def _run_config(arguments: argparse.Namespace, context: KebabContext) -> int:
    path = config_file(context.config, context.environ)
    if arguments.what == "path":
        context.output.show({"path": str(path), "exists": path.exists()}, [str(path)])
        return OK
    if context.is_readonly and not arguments.dry_run:
        raise ReadonlyMode(
            "kebab config migrate writes a file, and --readonly or KEBAB_READONLY forbids it", "use --dry-run"
        )
    report = await context.call(migrate_config, path, dry_run=arguments.dry_run)
    if context.as_json:
        print_wire(context, report)
        return OK
    if not report.changes:
        context.output.text(f"{path} is of version {report.to_version}: nothing to do")
    for change in report.changes:
        context.output.text(change)
    if isinstance(report.backup, str):
        context.note(f"the file as it was: {report.backup}")
    return OK


def _add_reset(parser: argparse.ArgumentParser) -> None:
    scopes = parser.add_mutually_exclusive_group(required=True)
    for name, what in _SCOPES.items():
        scopes.add_argument(f"--{name}", dest="scope", action="store_const", const=name, help=f"remove {what}")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


async def _run_reset(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.ingest.reset import reset

    service = await context.open()
    service.require_writable("kebab reset")
    what = _SCOPES[arguments.scope]
    where = service.backend.place if service.settings.config.store.url else service.settings.data.data
    if not arguments.yes:
        if not context.console.stdin_is_tty:
            raise InvalidInput("a reset must be confirmed, and stdin is not a terminal", "confirm it with --yes")
        answer = await context.console.ask(f"Remove {what} ({where})? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            context.note("nothing was removed")
            return ERROR
    report = await context.call(reset, service.settings, arguments.scope)
    if context.as_json:
        print_wire(context, report)
        return OK
    for path in report.removed:
        context.output.text(path)
    context.note(f"{format_size(report.removed_bytes)} removed, {report.documents_removed} documents")
    return OK


COMMANDS = (
    Command(
        "init",
        "write a configuration for your folder",
        _add_init,
        _run_init,
        "Write a commented configuration. Nothing is indexed yet: kebab ingest does that.",
        (
            ("init ~/notes", "in the usual place"),
            ("init ~/notes --store postgresql://me@db.example.com/notes", "in PostgreSQL, for several machines"),
            ("init ~/work/docs --config ~/work/kebab.toml", "a second knowledge base, used with --config"),
        ),
    ),
    Command(
        "config",
        "bring an old configuration up to date",
        _add_config,
        _run_config,
        "Migrate the configuration file, or say where it is.",
        (("config migrate --dry-run", "what would change"), ("config path", "where the file is")),
    ),
    Command(
        "reset",
        "remove the index, the vectors or the configuration",
        _add_reset,
        _run_reset,
        "Remove what kebab keeps. Your own files are never touched.",
        (
            ("reset --data-only", "then kebab ingest makes it anew"),
            ("reset --all --yes", "everything, without a question"),
        ),
    ),
)
