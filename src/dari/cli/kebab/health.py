"""`kebab schema` and `kebab doctor`: what this installation is, and whether it works."""

from __future__ import annotations

import argparse

from dari.cli.kebab.context import OK, UNHEALTHY, KebabContext, print_wire
from dari.cli.kit.parser import Command
from dari.cli.kit.table import format_pairs, one_line


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wire", metavar="NAME", help="print the JSON Schema of one wire object, such as search_hit.v1"
    )


async def _run_schema(arguments: argparse.Namespace, context: KebabContext) -> int:
    if arguments.wire is not None:
        from dari.knowledge.wire.schemas import schema_text

        context.output.write(schema_text(arguments.wire))
        return OK
    service = await context.open()
    schema = await context.call(service.schema)
    if context.as_json:
        print_wire(context, schema)
        return OK
    able = schema.capabilities
    names = sorted(name for name in able.__struct_fields__ if getattr(able, name))
    models, stats = schema.models, schema.stats
    context.output.text(
        *format_pairs(
            {
                "kebab": schema.kebab_version,
                "documents": stats.doc_count,
                "chunks": stats.chunk_count,
                "last ingest": stats.last_ingest_at or "never",
                "index": models.index_version,
                "parser": models.parser_version,
                "chunker": models.chunker_version,
                "embedding": models.embedding_version or "none",
                "revision": models.corpus_revision,
                "can": ", ".join(names),
                "wire": ", ".join(schema.wire.schemas),
            }
        )
    )
    return OK


async def _run_doctor(arguments: argparse.Namespace, context: KebabContext) -> int:
    from dari.knowledge.health import run_doctor

    report = await context.call(run_doctor, context.service)
    if context.as_json:
        print_wire(context, report)
        return OK if report.ok else UNHEALTHY
    for check in report.checks:
        mark = context.output.paint("ok  ", "green") if check.ok else context.output.paint("FAIL", "red")
        context.output.text(f"{mark}  {check.name}: {one_line(check.detail)}")
        if isinstance(check.hint, str):
            context.output.text(
                f"      {context.output.paint('hint:', 'cyan')} {context.rewrite(one_line(check.hint))}"
            )
    return OK if report.ok else UNHEALTHY


COMMANDS = (
    Command(
        "schema",
        "versions, capabilities and sizes; the JSON Schema of a wire object",
        _add_schema,
        _run_schema,
        "Show what this knowledge base holds and can do, or the JSON Schema of one wire object.",
        (("schema --json", "as schema.v1"), ("schema --wire search_hit.v1", "the shipped JSON Schema")),
    ),
    Command(
        "doctor",
        "check the installation, with the next step for each fault",
        lambda parser: None,
        _run_doctor,
        "Check configuration, data folder, index, model, language model and OCR.",
        (("doctor", "exit code 3 when a check fails"), ("doctor --json", "as doctor.v1")),
    ),
)
