"""The parser that fits an output best, and how sure it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import msgspec

from dari.terminal.output_parsers.result import OutputText, Parsed

_MINIMUM = 0.4
"""Below this a guess misleads more often than it helps; a parser asked for by name may be less sure."""
_CERTAIN = 0.98
"""No other parser is asked after one is this sure; a long output is then read once and not twenty times."""
_PROMPT = re.compile(r"(?:\S{0,80}[\w~/\])][$#%❯»]|[$❯»]) {1,2}(\S.{0,500})$")

Read = Callable[[OutputText], Parsed | None]


@dataclass(frozen=True, slots=True)
class _Parser:
    """Where a parser is, one of the `signs` that its output always holds, and the commands that print it."""

    place: str
    signs: tuple[str, ...] = ()
    commands: str = r"(?!)"

    def load(self) -> Read:
        module, _, name = self.place.partition(":")
        read: Read = getattr(import_module(f"dari.terminal.output_parsers.{module}"), name)
        return read


_RUNNERS = r"(?:\S*/)?(?:npx|npm|pnpm|yarn|bun|node)\b.*"
_PARSERS = {
    "json": _Parser("documents:read_json", ("{", "["), r"jq\b|curl\b|kubectl .*-o ?json|docker inspect"),
    "yaml": _Parser(
        "documents:read_yaml",
        (":", "- "),
        r"(?:cat|bat|head|yq|helm|kubectl|docker(?: |-)compose)\b.*(?:\.ya?ml\b|yaml|template|get|config)|yq\b",
    ),
    "pytest": _Parser(
        "suites.python:read_pytest",
        ("passed", "failed", "PASSED", "FAILED", "ERROR", "no tests ran", "test session starts", "skipped", "error"),
        r"(?:\S*/)?(?:python\d?[\d.]* -m )?(?:py\.?test)\b|(?:uv|poetry|hatch) run pytest\b|tox\b",
    ),
    "cargo_test": _Parser(
        "suites.compiled:read_cargo_test", ("test result:", "running "), r"cargo (?:\+\S+ )?(?:test|t|nextest)\b"
    ),
    "javascript_tests": _Parser(
        "suites.javascript:read_javascript_tests",
        ("Tests", "passing", "failing", "# pass", "ℹ pass", "FAIL "),
        rf"{_RUNNERS}test\b|{_RUNNERS}(?:jest|vitest|mocha)\b|jest\b|vitest\b|mocha\b",
    ),
    "go_test": _Parser("suites.compiled:read_go_test", ("--- ", "ok ", "FAIL", "PASS"), r"go test\b"),
    "unittest": _Parser(
        "suites.python:read_unittest",
        ("Ran ",),
        r"(?:\S*/)?python[\d.]* (?:-\w+ )*(?:-m unittest\b|\S*(?:manage|test\w*)\.py\b)",
    ),
    "rspec": _Parser(
        "suites.rspec:read_rspec", (" example, ", " examples, "), r"(?:bundle exec )?(?:\S*/)?(?:rspec|rake)\b"
    ),
    "ctest": _Parser(
        "suites.compiled:read_ctest",
        ("Test #", "% tests passed"),
        r"(?:\S*/)?(?:ctest|make (?:test|check)|ninja test)\b",
    ),
    "surefire": _Parser("suites.compiled:read_surefire", ("Tests run: ",), r"(?:\S*/)?(?:mvnw?|mvnd)\b"),
    "git_status": _Parser("git_status:read_status", (), r"git (?:\S+ )*?status\b"),
    "git_log": _Parser("git_history:read_commits", (), r"git (?:\S+ )*?(?:log|show|reflog)\b"),
    "docker_ps": _Parser(
        "listings:read_containers",
        ("CONTAINER ID", "STATUS", "PORTS"),
        r"(?:docker|podman|nerdctl) (?:compose )?(?:container )?(?:ps|ls)\b",
    ),
    "docker_images": _Parser(
        "listings:read_images",
        ("REPOSITORY", "IMAGE ID", "DISK USAGE"),
        r"(?:docker|podman|nerdctl) (?:images\b|image ls\b)",
    ),
    "diff_stat": _Parser(
        "git_history:read_diff_stat",
        (" changed", " | ", "\t", "  "),
        r"git (?:\S+ )*?(?:diff|show|pull|merge|commit|stash|log)\b.*--(?:\w*stat|summary)|"
        r"git (?:pull|merge)\b|diffstat\b",
    ),
    "du": _Parser("listings:read_du", (), r"(?:g|n)?du\b"),
    "wc": _Parser("listings:read_wc", (), r"g?wc\b"),
    "ls": _Parser("listings:read_listing", (), r"(?:ls|ll|dir|exa|eza)\b"),
    "ps": _Parser("listings:read_processes", ("PID",), r"ps\b"),
    "df": _Parser("listings:read_disks", ("%",), r"df\b"),
    "python_traceback": _Parser("traces:read_python_trace", ('File "',), r"\S*python[\d.]*\b"),
    "java_traceback": _Parser("traces:read_java_trace", (" at ", "\tat "), r"java\b"),
    "node_traceback": _Parser("traces:read_node_trace", ("    at ",), r"(?:node|npm|npx)\b"),
    "go_traceback": _Parser("traces:read_go_trace", ("goroutine ",), r"go run\b"),
    "rust_traceback": _Parser("traces:read_rust_trace", ("panicked at",), r"cargo run\b"),
    "diagnostics": _Parser(
        "diagnostics:read_diagnostics",
        (),
        r"(?:g?cc|g\+\+|clang\S*|make|cmake|ninja|rustc|cargo (?:build|check|clippy|b|c)|(?:npx )?tsc|javac"
        r"|go (?:build|vet)|(?:\S*/)?(?:mypy|ruff|flake8|pyright)|(?:npx )?eslint|dmypy)\b",
    ),
    "csv": _Parser(
        "documents:read_delimited",
        (",", "\t", ";", "|"),
        r".*\.(?:csv|tsv)\b|(?:csv\w+|xsv|mlr|sqlite3 .*-csv|psql .*--csv|mysql .*(?:-B|--batch))\b",
    ),
    "table": _Parser("tables:read_table"),
    "key_value": _Parser("documents:read_pairs", (":", "="), r"(?:env|printenv|lscpu|stat|git config)\b"),
}


def parser_names() -> list[str]:
    """Names that `hint` takes; a result's type is taken too."""
    return list(_PARSERS)


def parse_structured(text: str, *, command: str = "", hint: str | None = None) -> Parsed:
    """The text as data. `hint` names a parser or a type and keeps the others out. Never raises.

    Text that no parser knows comes back as `type: "text"` with a low confidence and the text as its value.
    """
    raw = text.replace("\r\n", "\n").replace("\r", "\n")
    if not raw.isascii():
        raw = raw.encode("utf-8", "backslashreplace").decode()
    shown = raw
    first, newline, rest = raw.partition("\n")
    if prompt := _PROMPT.match(first):
        command = command or prompt[1]
        shown = newline + rest
    notes: list[str] = []
    aliases = {"tsv": "csv", "yml": "yaml", "diffstat": "diff_stat", "git_diff_stat": "diff_stat"}
    wanted = hint.strip().lower().replace("-", "_").replace(" ", "_") if hint else ""
    wanted = aliases.get(wanted, wanted)
    candidates = {name: parser for name, parser in _PARSERS.items() if not wanted or name == wanted}
    if wanted and not candidates:
        candidates = dict(_PARSERS)
    page = OutputText(shown, command.strip(), bool(wanted))
    best: Parsed | None = None
    for name, parser in candidates.items():
        found = _try(name, parser, page)
        if found and wanted and name != wanted and found.type != wanted:
            continue
        if found and (wanted or found.confidence >= _MINIMUM) and (not best or found.confidence > best.confidence):
            best = found
        if best and best.confidence >= _CERTAIN:
            break
    if best:
        return best
    if wanted:
        if wanted.startswith("yaml"):
            notes += _about_yaml()
        known = ", ".join([*_PARSERS, "text"])
        is_known = wanted in _PARSERS or wanted in _TYPES
        notes.append(
            f"the parser {wanted!r} found nothing here"
            if is_known
            else f"no parser is named {wanted!r}; known are {known}"
        )
    return _as_text(raw, notes)


_TYPES = frozenset(
    (
        "table",
        "json",
        "json_lines",
        "yaml",
        "yaml_documents",
        "diff_stat",
        "test_report",
        "git_status",
        "commits",
        "traceback",
        "diagnostics",
        "key_value",
        "text",
    )
)


def _about_yaml() -> list[str]:
    from dari.terminal.output_parsers.documents import is_available

    if is_available():
        return []
    from dari.installation import install_extra

    return [f"YAML needs PyYAML, which the extra `bridge` brings: {install_extra('bridge')}"]


def _try(name: str, parser: _Parser, page: OutputText) -> Parsed | None:
    if parser.signs and not any(sign in page.raw for sign in parser.signs):
        return None
    found = parser.load()(page)
    if found is None:
        return None
    trust = found.confidence
    if _prints(parser, page.command):
        trust += (1 - trust) * 0.6
    return msgspec.structs.replace(found, parser=name, confidence=round(min(max(trust, 0.0), 1.0), 2))


def _prints(parser: _Parser, command: str) -> bool:
    """Whether one of the commands of the line is known to print what this parser reads."""
    parts = re.split(r"&&|\|\||[;|]", command[:500])
    return any(re.match(parser.commands, _without_settings(part)) for part in parts)


def _without_settings(part: str) -> str:
    words = part.split()
    while len(words) > 1 and (
        re.match(r"\w+=", words[0]) or words[0] in ("sudo", "time", "timeout", "nice", "env", "watch")
    ):
        skipped = words.pop(0)
        if skipped == "timeout" and words:
            words.pop(0)
    return " ".join(words)


def _as_text(raw: str, notes: list[str]) -> Parsed:
    last = raw.count("\n") + (not raw.endswith("\n"))
    return Parsed(
        type="text", parser="text", confidence=0.1, value=raw, notes=notes, lines=[(1, max(last, 1))] if raw else []
    )
