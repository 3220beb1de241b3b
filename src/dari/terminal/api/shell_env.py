"""Variables, aliases and functions as shell text that sets them, and text that puts back what was there before.

Every value stands in quotes of the shell that reads it, so none can end its quotes and be run when it is set. What was
there before is kept in variables of the shell itself, named after the context.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dari.errors import InvalidInput
from dari.terminal.api.clipboard import quote_fish
from dari.terminal.panes.shell_integration import ShellKind

MAX_NAMES = 100
MAX_CHARS = 64 * 1024
DONE = "crux-done"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_OURS = re.compile(r"_*(?:CRUX|crux)_|CRUX$|PS0$|PROMPT_COMMAND$")
# What a shell, the linker or a common program runs or reads code from when it is set.
_STRONG = re.compile(
    r"(?:LD|DYLD)_\w+|PATH|IFS|ENV|BASH_ENV|BASH_FUNC\w*|PS[1-4]|PROMPT|RPROMPT|ZDOTDIR|SHELL|SHELLOPTS|BASHOPTS|FPATH"
    r"|fish_\w+|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|PERL5(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|NODE_OPTIONS|JAVA_TOOL_OPTIONS"
    r"|GIT_(?:SSH\w*|EDITOR|PAGER|EXTERNAL_DIFF|PROXY_COMMAND|ASKPASS|CONFIG\w*|EXEC_PATH|TEMPLATE_DIR)|SSH_ASKPASS"
    r"|EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|SUDO_ASKPASS|\w+_COMMAND|HOME|HISTFILE"
)


@dataclass(frozen=True, slots=True)
class ShellContext:
    """What is put into a shell under one id."""

    id: str
    env: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*self.env, *self.aliases, *(f"{name}()" for name in self.functions)]

    def check(self) -> None:
        """InvalidInput for a name that is none, or too much of anything."""
        count = len(self.env) + len(self.aliases) + len(self.functions)
        if not 1 <= count <= MAX_NAMES:
            raise InvalidInput(f"{count} names to inject", f"give 1…{MAX_NAMES} of env, aliases and functions")
        for names, pattern, what in (
            (self.env, _VARIABLE, "variable"),
            (self.aliases, _WORD, "alias"),
            (self.functions, _WORD, "function"),
        ):
            for name, value in names.items():
                if not pattern.fullmatch(name):
                    raise InvalidInput(f"{name[:80]!r} is no name of a {what}", "use letters, digits and _")
                if _OURS.match(name):
                    raise InvalidInput(f"{name!r} is what the terminal itself uses", "use another name")
                if "\0" in value or (what == "alias" and "\n" in value):
                    raise InvalidInput(f"the {what} {name} holds a NUL or a line end", "take it out, or use a function")
        both = sorted(set(self.aliases) & set(self.functions))
        if both:
            raise InvalidInput(f"{both[0]!r} is given as alias and as function", "give one of them")
        size = sum(len(value) for part in (self.env, self.aliases, self.functions) for value in part.values())
        if size > MAX_CHARS:
            raise InvalidInput(f"{size} characters to inject", f"give at most {MAX_CHARS}")

    def doubt(self, name: str) -> str:
        """Why a person should see a variable before it is set; empty for most."""
        return f"{name} decides what other commands run or load" if _STRONG.fullmatch(name) else ""


def write_setup(injection: ShellContext, kind: ShellKind) -> str:
    """Text that sets everything and then prints DONE; nothing is set when a variable is read-only."""
    return _fish_setting(injection) if kind == "fish" else _posix_setting(injection)


def write_removal(injection: ShellContext, kind: ShellKind, later: Iterable[ShellContext] = ()) -> str:
    """Text that puts back what was there before, then prints DONE.

    A name that a later context of the same shell has set as well keeps that value; what was there before both is then
    what the later one puts back.
    """
    heirs: dict[str, str] = {}
    for other in later:
        for name in (*other.env, *(f"a:{word}" for word in other.aliases), *(f"f:{word}" for word in other.functions)):
            heirs.setdefault(name, other.id)
    return (_fish_removing if kind == "fish" else _posix_removing)(injection, heirs)


def _posix_setting(injection: ShellContext) -> str:
    quote, own = shlex.quote, f"__crux_{injection.id}"
    lines = []
    if injection.env:
        names = " ".join(injection.env)
        lines.append(f"(unset {names}) 2>/dev/null || {{ printf '%s' 'a variable is read-only'; return 0; }}")
    for name, value in injection.env.items():
        kept = f"{own}_v_{name}"
        lines.append(
            f'unset {kept} {kept}_x; if [ "${{{name}+x}}" ]; then {kept}=${name}; '
            f"export -p | grep -qE '(^| ){name}(=|$)' && {kept}_x=1; fi; {name}={quote(value)}; export {name}"
        )
    for name, value in injection.aliases.items():
        kept = f"{own}_a_{_plain(name)}"
        lines.append(f"{kept}=$(alias {name} 2>/dev/null); alias {name}={quote(value)}")
    for name, body in injection.functions.items():
        lines.append(_posix_function(name, body, f"{own}_f_{_plain(name)}"))
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _posix_function(name: str, body: str, kept: str) -> str:
    """The body is run by `eval` from a quoted word: it cannot end the function and be run now."""
    define = shlex.quote(f"{name} () {{ eval {shlex.quote(body)}; }}")
    return (
        f'{kept}=; if [ -n "${{BASH_VERSION-}}" ]; then {kept}=$(declare -f -- {name} 2>/dev/null); '
        f'elif [ -n "${{ZSH_VERSION-}}" ]; then {kept}=$(functions {name} 2>/dev/null); fi; '
        f"{kept}_al=$(alias {name} 2>/dev/null); unalias {name} 2>/dev/null; eval {define}"
    )


def _posix_removing(injection: ShellContext, heirs: Mapping[str, str]) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name in injection.env:
        kept = f"{own}_v_{name}"
        if name in heirs:
            heir = f"__crux_{heirs[name]}_v_{name}"
            lines.append(_handed(kept, heir) + "; " + _handed(f"{kept}_x", f"{heir}_x"))
        else:
            back = (
                f'unset {name}; if [ "${{{kept}+x}}" ]; then {name}=${kept}; [ "${{{kept}_x-}}" ] && export {name}; fi'
            )
            lines.append(back)
        lines.append(f"unset {kept} {kept}_x")
    for name in injection.aliases:
        kept = f"{own}_a_{_plain(name)}"
        if f"a:{name}" in heirs:
            lines.append(_handed(kept, f"__crux_{heirs[f'a:{name}']}_a_{_plain(name)}"))
        else:
            lines.append(f"unalias {name} 2>/dev/null; {_realiased(kept)}")
        lines.append(f"unset {kept}")
    for name in injection.functions:
        kept = f"{own}_f_{_plain(name)}"
        if f"f:{name}" in heirs:
            heir = f"__crux_{heirs[f'f:{name}']}_f_{_plain(name)}"
            lines.append(f"{_handed(kept, heir)}; {_handed(f'{kept}_al', f'{heir}_al')}")
        else:
            lines.append(f'unset -f {name} 2>/dev/null; [ -n "${kept}" ] && eval "${kept}"; {_realiased(f"{kept}_al")}')
        lines.append(f"unset {kept} {kept}_al")
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _realiased(kept: str) -> str:
    """Shells print an alias as `alias name='…'`, or without the first word."""
    return f'case "${kept}" in "") ;; "alias "*) eval "${kept}" ;; *) eval "alias ${kept}" ;; esac'


def _handed(kept: str, heir: str) -> str:
    return f'if [ "${{{kept}+x}}" ]; then {heir}=${kept}; else unset {heir}; fi'


def _fish_setting(injection: ShellContext) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name, value in injection.env.items():
        kept = f"{own}_v_{name}"
        lines.append(
            f"set -e {kept}; set -e {kept}_x; if set -q {name}; set -g {kept} ${name}; "
            f"set -qx {name}; and set -g {kept}_x 1; end; set -gx {name} {quote_fish(value)}"
        )
    bodies = {name: f"{value} $argv" for name, value in injection.aliases.items()}
    for name, body in {**bodies, **injection.functions}.items():
        kept = f"{own}_f_{name}"
        # `eval` of a quoted word, as for the other shells; an alias of its own name means the command.
        text = re.sub(rf"^{re.escape(name)}\b", f"command {name}", body) if name in injection.aliases else body
        define = f"function {name}; eval {quote_fish(text)}; end"
        lines.append(
            f"functions -e {kept}; functions -q {name}; and functions -c {name} {kept}; functions -e {name}; "
            f"eval {quote_fish(define)}"
        )
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _fish_removing(injection: ShellContext, heirs: Mapping[str, str]) -> str:
    own = f"__crux_{injection.id}"
    lines = []
    for name in injection.env:
        kept = f"{own}_v_{name}"
        if name in heirs:
            heir = f"__crux_{heirs[name]}_v_{name}"
            for end in ("", "_x"):
                lines.append(f"set -e {heir}{end}; set -q {kept}{end}; and set -g {heir}{end} ${kept}{end}")
        else:
            lines.append(
                f"set -e {name}; if set -q {kept}; if set -q {kept}_x; set -gx {name} ${kept}; "
                f"else; set -gu {name} ${kept}; end; end"
            )
        lines.append(f"set -e {kept}; set -e {kept}_x")
    for name, mark in (*((name, "a:") for name in injection.aliases), *((name, "f:") for name in injection.functions)):
        kept = f"{own}_f_{name}"
        heir_id = heirs.get(f"a:{name}") or heirs.get(f"f:{name}") if mark else None
        if heir_id:
            heir = f"__crux_{heir_id}_f_{name}"
            lines.append(f"functions -e {heir}; functions -q {kept}; and functions -c {kept} {heir}")
        else:
            lines.append(f"functions -e {name}; functions -q {kept}; and functions -c {kept} {name}")
        lines.append(f"functions -e {kept}")
    return "\n".join([*lines, f"printf '%s' {DONE}"])


def _plain(name: str) -> str:
    """A word as part of a variable's name; names that differ stay different."""
    return re.sub(r"[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", name)
