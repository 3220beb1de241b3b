"""`list-tools`: what can be called, with the server of each tool."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dari.bridge.config.catalog import Catalog, CatalogEntry, to_public_json
from dari.bridge.upstream.status import UpstreamStatus
from dari.cli.kit.console import print_json
from dari.cli.kit.parser import Command
from dari.cli.kit.table import first_sentence, print_table
from dari.cli.remote.context import (
    OK,
    CommandContext,
    add_server_options,
    exit_code,
    name_server,
    select_upstreams,
    show_error,
)
from dari.cli.remote.progress import Deadline, trace_exchange
from dari.errors import DariError, InvalidInput

if TYPE_CHECKING:
    from dari.bridge.upstream.tool_view import UpstreamTool
    from dari.bridge.upstream.upstream import Upstream

Item = TypeVar("Item")


class ListResults(Generic[Item]):
    """`found` in the order of the profiles; `code` is the exit code of the worst failure."""

    def __init__(self, found: list[tuple[Upstream, Sequence[Item]]], code: int) -> None:
        self.found = found
        self.code = code

    def rows(self) -> list[tuple[str, Item]]:
        return [(upstream.id, item) for upstream, items in self.found for item in items]


async def gather_lists(
    arguments: argparse.Namespace,
    context: CommandContext,
    method: str,
    ask: Callable[[Upstream], Awaitable[Sequence[Item]]],
    note: Callable[[Upstream], str] = lambda _: "",
) -> ListResults[Item]:
    """Ask every chosen server. `note` is read before the question, for `--log`."""
    chosen = select_upstreams(arguments, context)
    limit_ms = arguments.timeout
    answers = await asyncio.gather(*(_asked(each, context, method, ask, note(each), limit_ms) for each in chosen))
    found = [(each, items) for each, items in zip(chosen, answers, strict=True) if not isinstance(items, int)]
    return ListResults(found, max((code for code in answers if isinstance(code, int)), default=OK))


async def _asked(
    upstream: Upstream,
    context: CommandContext,
    method: str,
    ask: Callable[[Upstream], Awaitable[Sequence[Item]]],
    note: str,
    limit_ms: int | None,
) -> Sequence[Item] | int:
    try:
        with trace_exchange(context, upstream, method) as trace:
            async with Deadline(limit_ms).over(method):
                items = await ask(upstream)
            trace.note(f"{len(items)} items{note}")
    except DariError as error:
        show_error(name_server(error, upstream.id), context.console)
        return exit_code(error)
    return items


def add_list_tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="SERVER", help="a profile by its id, or an address (default: --server)"
    )
    add_server_options(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone: an array of tools with their server")


async def run_list_tools(arguments: argparse.Namespace, context: CommandContext) -> int:
    _take_word(arguments)
    is_fresh = arguments.refresh or arguments.stdio is not None

    def source(upstream: Upstream) -> str:
        is_known = upstream.known_tools() is not None
        return ", from the cache" if is_known and not is_fresh else ""

    gathered = await gather_lists(arguments, context, "tools/list", lambda one: one.tools(fresh=is_fresh), source)
    if arguments.json:
        print_json(context.console, [{"server": id, **tool.shown} for id, tool in gathered.rows()])
    else:
        _show(gathered, context)
    for upstream, _ in gathered.found:
        _tell_held(upstream, context)
    return gathered.code


def _take_word(arguments: argparse.Namespace) -> None:
    if not arguments.id:
        return
    if arguments.server or arguments.endpoint or arguments.stdio or arguments.all:
        raise InvalidInput(f"'{arguments.id[:80]}' and an option name two servers", "give one of them")
    if arguments.id.startswith(("http://", "https://")):
        arguments.endpoint = arguments.id
    else:
        arguments.server = arguments.id


def _tell_held(upstream: Upstream, context: CommandContext) -> None:
    held = upstream.status().held
    if held:
        context.warn(
            f"server '{upstream.id}' holds back {held} item{'s' if held > 1 else ''}: new, or not what they were",
            f"look at the difference, then agree: dari remote approve {upstream.target.pin_name}",
        )


def _show(gathered: ListResults[UpstreamTool], context: CommandContext) -> None:
    for upstream, tools in gathered.found:
        count = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"
        context.say(f"server '{upstream.id}' ({upstream.profile.kind}): {count}")
    if rows := [(f"{id}/{tool.name}", _line(tool.shown)) for id, tool in gathered.rows()]:
        context.say("")
        print_table(context.console, ("SERVER/TOOL", "WHAT IT DOES"), rows)


def _line(shown: dict[str, Any]) -> str:
    return first_sentence(shown.get("description")) or first_sentence(shown.get("title"))


def add_list_prompts(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run_list_prompts(arguments: argparse.Namespace, context: CommandContext) -> int:
    gathered = await gather_lists(arguments, context, "prompts/list", lambda one: one.prompts(fresh=arguments.refresh))
    if arguments.json:
        print_json(context.console, [{"server": id, **item} for id, item in gathered.rows()])
        return gathered.code
    for upstream, items in gathered.found:
        context.say(f"server '{upstream.id}': {len(items)} prompt{'' if len(items) == 1 else 's'}")
    if rows := [_prompt_row(id, item) for id, item in gathered.rows()]:
        context.say("")
        print_table(context.console, ("SERVER/PROMPT", "ARGUMENTS", "WHAT IT IS FOR"), rows)
    return gathered.code


def _prompt_row(id: str, item: dict[str, Any]) -> tuple[str, ...]:
    names = [f"{each['name']}{'*' if each.get('required') else ''}" for each in arguments_of(item)]
    said = first_sentence(item.get("description")) or str(item.get("title") or "")
    return f"{id}/{item.get('name', '')}", ", ".join(names), said


def arguments_of(prompt: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments that a prompt lists, as far as they have a name."""
    listed = prompt.get("arguments")
    return (
        [each for each in listed if isinstance(each, dict) and isinstance(each.get("name"), str)]
        if isinstance(listed, list)
        else []
    )


def add_list_resources(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser, has_all=True)
    parser.add_argument("--refresh", action="store_true", help="ask the server, whatever the cache holds")
    parser.add_argument("--json", action="store_true", help="print the list alone: resources, then templates, as JSON")


async def run_list_resources(arguments: argparse.Namespace, context: CommandContext) -> int:
    async def both(upstream: Upstream) -> Sequence[dict[str, Any]]:
        resources = await upstream.resources(fresh=arguments.refresh)
        return [*resources, *await upstream.templates(fresh=arguments.refresh)]

    gathered = await gather_lists(arguments, context, "resources/list", both)
    if arguments.json:
        print_json(context.console, [{"server": id, **item} for id, item in gathered.rows()])
        return gathered.code
    for upstream, items in gathered.found:
        templates = sum("uriTemplate" in item for item in items)
        context.say(f"server '{upstream.id}': {len(items) - templates} resources, {templates} templates")
    if rows := [_resource_row(id, item) for id, item in gathered.rows()]:
        context.say("")
        print_table(context.console, ("SERVER", "ADDRESS", "TYPE", "WHAT IT IS"), rows)
    return gathered.code


def _resource_row(id: str, item: dict[str, Any]) -> tuple[str, ...]:
    address = item.get("uri", item.get("uriTemplate", ""))
    said = first_sentence(item.get("description")) or str(item.get("title") or item.get("name") or "")
    return id, str(address), str(item.get("mimeType", "")), said


def add_servers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list alone, as JSON")


async def run_servers(arguments: argparse.Namespace, context: CommandContext) -> int:
    catalog = context.view.catalog()
    if arguments.json:
        statuses = _statuses(context)
        print_json(context.console, [_as_json(one, catalog, statuses.get(one.id)) for one in catalog.named])
    else:
        statuses = _statuses(context)
        rows = [_server_row(one, catalog, statuses.get(one.id)) for one in catalog.named]
        print_table(context.console, ("SERVER", "KIND", "STATE", "NOW", "DEFAULT", "ADDRESS", "WRITTEN IN"), rows)
        for status in statuses.values():
            _tell(status, context)
        if not catalog.listed:
            context.note(
                "no server profiles of your own\n"
                "hint: dari remote add, dari remote import, or write ~/.config/crewx/mcp.json"
            )
    for problem in catalog.problems:
        context.warn(problem)
    for one in catalog.listed:
        if one.message:
            context.warn(one.message, one.hint)
    return OK


def _statuses(context: CommandContext) -> dict[str, UpstreamStatus]:
    """Of the servers that somebody has used since the daemon's start, from here; the worst state of each name."""
    found: dict[str, UpstreamStatus] = {}
    here = {listed.id for listed in context.view.catalog().named}
    for status in context.bridge.statuses():
        if status.id in here and (status.id not in found or status.failures > found[status.id].failures):
            found[status.id] = status
    return found


def _as_json(listed: CatalogEntry, catalog: Catalog, status: UpstreamStatus | None) -> dict[str, Any]:
    now = None
    if status is not None:
        now = {
            "state": status.state,
            "doing": status.doing,
            "failures": status.failures,
            "lastError": status.last_error,
            "retryInS": status.retry_in_s,
        }
    return {**to_public_json(listed), "default": listed.id == catalog.default_id, "now": now}


def _server_row(listed: CatalogEntry, catalog: Catalog, status: UpstreamStatus | None) -> tuple[str, ...]:
    address = listed.profile.address if listed.profile else "-"
    default = "yes" if listed.id == catalog.default_id else ""
    now = "-" if status is None else status.state
    return listed.id, listed.kind or "-", listed.state, now, default, address, str(listed.source)


def _tell(status: UpstreamStatus, context: CommandContext) -> None:
    """What a person should know about a server that does not simply work."""
    if status.doing:
        context.note(f"{status.id}: {status.doing}")
    elif status.state in ("backoff", "crash-loop"):
        when = "" if status.retry_in_s is None else f", next try in {status.retry_in_s:.0f} s"
        hint = f"mend it, then try it at once: {context.program} prewarm --server {status.id}"
        context.warn(f"{status.id}: {status.state}{when}: {status.last_error}", hint)


def add_list(parser: argparse.ArgumentParser) -> None:
    add_list_tools(parser)


async def run_list(arguments: argparse.Namespace, context: CommandContext) -> int:
    names_one = (arguments.id, arguments.server, arguments.endpoint, arguments.stdio, arguments.all, arguments.refresh)
    if any(names_one):
        return await run_list_tools(arguments, context)
    return await run_servers(arguments, context)


COMMANDS = (
    Command(
        "list-tools",
        "List the tools of a server, or of all, with the server of each.",
        add_list_tools,
        run_list_tools,
        description="""\
List the tools of a server. Without --server it is the default profile; --all lists every server at once:
one that does not answer is named on stderr, does not delay the others, and makes the exit code 2.""",
        examples=(
            ("list-tools --server fs", "the tools of one server"),
            ('list-tools --endpoint http://127.0.0.1:9001 --key "$CREWX_MCP_KEY"', "a server without a profile"),
            ("list-tools --all --json", "every tool of every server with its schema, for a script"),
        ),
    ),
    Command(
        "list-prompts",
        "List the prompts of a server, with their arguments.",
        add_list_prompts,
        run_list_prompts,
        examples=(
            ("list-prompts --server docs", "names, and arguments; those with * are required"),
            ("list-prompts --all --json", "those of every server, for a script"),
        ),
    ),
    Command(
        "list-resources",
        "List the resources of a server, and the patterns of addresses that it understands.",
        add_list_resources,
        run_list_resources,
        examples=(
            ("list-resources --server docs", "addresses to read, and templates with {placeholders}"),
            ("list-resources --all --json", "those of every server, for a script"),
        ),
    ),
    Command(
        "servers",
        "List the server profiles: kind, address, state, and where each is written down.",
        add_servers,
        run_servers,
        description="""\
List the server profiles. They are read from the file that CREWX_MCP_JSON names, then ./.crewx/mcp.json
(once you trust it), then ~/.config/crewx/mcp.json; a name counts where it first stands.
NOW is what the daemon knows of a server that was used: queued · starting · ready · idle · backoff · crash-loop · known
(its lists are remembered).
States: ready · disabled · broken (the file says why) · untrusted (a project's file that nobody has agreed to).""",
        examples=(
            ("servers", "a table"),
            ("servers --json", "everything but secrets, for a script"),
        ),
    ),
    Command(
        "list",
        "List the servers, or the tools of one: short for servers and list-tools.",
        add_list,
        run_list,
        examples=(
            ("list", "the servers, as `servers` shows them"),
            ("list fs", "the tools of one server"),
            ("list https://mcp.example.com/mcp", "the tools of a server without a profile"),
            ("list --stdio 'npx -y some-server'", "… of one that runs as long as this command"),
        ),
    ),
)
