"""The command line, the targets and the formats against tmux itself."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator

import pytest

from dari.errors import DariError
from dari.terminal.layout.cells import Area
from dari.terminal.tmux import formats
from dari.terminal.tmux.command_line import COMMANDS, parse_invocation
from dari.terminal.tmux.formats import Scope, expand
from dari.terminal.tmux.targets import Kind, ResolvedTarget, Targets, TmuxPane, TmuxSession, TmuxWindow
from tests.support.tmux_server import Tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture(scope="module")
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    """Sessions `work` (windows 0 edit, 1 logs with four panes, 5 logs-old) and `play` (window 0 game with two)."""
    server = Tmux(tmp_path_factory.mktemp("t"))
    try:
        server.run("new-session", "-d", "-s", "work", "-n", "edit", "-x", "120", "-y", "40", "cat")
        server.run("set-option", "-g", "default-command", "cat")
        for option in ("automatic-rename", "allow-rename"):
            server.run("set-option", "-g", option, "off")
        server.run("new-window", "-n", "logs", "-t", "work:1")
        server.run("split-window", "-h", "-t", "work:1")
        server.run("split-window", "-v", "-t", "work:1")
        server.run("split-window", "-v", "-t", "work:1.0")
        server.run("new-window", "-d", "-n", "logs-old", "-t", "work:5")
        server.run("new-session", "-d", "-s", "play", "-n", "game", "-x", "100", "-y", "30", "cat")
        server.run("split-window", "-v", "-t", "play:0")
        server.run("select-window", "-t", "work:0")
        server.run("select-window", "-t", "work:1")
        for pane in ("3", "2", "0"):
            server.run("select-pane", "-t", f"work:1.{pane}")
        server.run("select-pane", "-t", "work:1.1", "-T", "a 'title' #1; ${x}")
        yield server
    finally:
        server.kill()


def _rows(tmux: Tmux, *arguments: str) -> list[list[str]]:
    return [line.split("|") for line in tmux.run(*arguments).splitlines()]


def _view(tmux: Tmux) -> list[TmuxSession]:
    sessions = []
    for session_id, session_name in _rows(tmux, "list-sessions", "-F", "#{session_id}|#{session_name}"):
        windows = []
        listed = _rows(
            tmux, "list-windows", "-t", session_id, "-F", "#{window_id}|#{window_index}|#{window_name}|#{window_flags}"
        )
        for window_id, index, name, _ in listed:
            form = "#{pane_id}|#{pane_left}|#{pane_top}|#{pane_width}|#{pane_height}|#{pane_active}|#{pane_last}"
            rows = _rows(tmux, "list-panes", "-t", window_id, "-F", form)
            panes = tuple(TmuxPane(row[0], Area(*map(int, row[1:5]))) for row in rows)
            recent = [row[0] for row in rows if row[5] == "1"] + [row[0] for row in rows if row[6] == "1"]
            recent += [row[0] for row in rows if row[0] not in recent]
            windows.append(TmuxWindow(window_id, int(index), name, panes, tuple(recent)))
        flags = {row[0]: row[3] for row in listed}
        recent_windows = [key for key, flag in flags.items() if "*" in flag] + [
            key for key, flag in flags.items() if "-" in flag
        ]
        recent_windows += [key for key in flags if key not in recent_windows]
        sessions.append(TmuxSession(session_id, session_name, tuple(windows), tuple(recent_windows)))
    return sessions


TARGETS = [
    "%0",
    "%1",
    "%4",
    "%99",
    "@0",
    "@1",
    "@99",
    "$0",
    "$1",
    "$9",
    "work",
    "play",
    "wor",
    "p*",
    "w*k",
    "=work",
    "=wor",
    "nope",
    "work:",
    "play:",
    "work:1",
    "work:1.2",
    "work:1.9",
    "work:5",
    "work:9",
    "work:edit",
    "work:ed",
    "work:logs",
    "work:=logs",
    "work:=log",
    "work:lo*",
    "work:log",
    "work:+",
    "work:-",
    "work:+2",
    "work:-2",
    "work:!",
    "work:^",
    "work:$",
    "work:{start}",
    "work:{end}",
    "work:=^",
    "work:{last}",
    "work:{next}",
    "work:{previous}",
    "play:0.1",
    "play:game.0",
    ":1",
    ":1.3",
    ":edit",
    ":.1",
    ":.+",
    ".1",
    ".+1",
    ".-1",
    ".+2",
    ".!",
    ".{last}",
    ".{next}",
    ".{top-left}",
    ".{bottom-right}",
    "{top-right}",
    "{bottom-left}",
    "{top}",
    "{bottom}",
    "{left}",
    "{right}",
    "{up-of}",
    "{down-of}",
    "{left-of}",
    "{right-of}",
    "{last}",
    "{next}",
    "+",
    "-",
    "!",
    "^",
    "$",
    "0",
    "1",
    "2",
    "7",
    "logs",
    "edit",
    "=edit",
    "logs.1",
    "edit.0",
    "edit.1",
    "work:1.{top-left}",
    "1.1",
    "@1.2",
    "work:@1",
    "work:@9",
    "play:@1",
    "work:%2",
    "work:1.%3",
    "play:0.%3",
    "{marked}",
    "{mouse}",
    "=",
    "~",
    ":",
    ".",
    "a.b.c",
    "work:1.",
    "work:.1",
    "=work:=edit.0",
    "play:{end}.{bottom}",
    "x:1",
    "work:x",
    "work:1.x",
    "{nonsense}",
]


@pytest.mark.parametrize("kind", ["pane", "window", "session"])
@pytest.mark.parametrize("caller", ["%1", "%3"])
def test_a_target_names_what_tmux_finds(kind: Kind, caller: str, tmux: Tmux) -> None:
    sessions = _view(tmux)
    here = next(session for session in sessions if session.name == "work")
    called_from = next(pane for pane in here.current.panes if pane.id == caller)
    targets = Targets(sessions, ResolvedTarget(here, here.current, called_from))
    command = {"pane": "send-keys", "window": "list-panes", "session": "has-session"}[kind]
    wrong = []
    for text in ("", *TARGETS):
        try:
            place = targets.find(text, kind)
            ours = f"{place.session.name}:{place.window.index}.{place.pane.id}"
        except DariError as error:
            ours = error.message
        theirs = _found(tmux, kind, command, text, caller)
        if kind != "pane" and not any(each.startswith(("can't", "no ")) for each in (ours, theirs)):
            part = slice(0, ours.rfind(".")) if kind == "window" else slice(0, ours.find(":"))
            ours, theirs = ours[part], theirs[part]
        if ours != theirs:
            wrong.append((text, ours, theirs))
    assert not wrong


def _found(tmux: Tmux, kind: Kind, command: str, text: str, pane: str) -> str:
    """What tmux finds for a target of this kind, called from that pane."""
    form = "#{session_name}:#{window_index}.#{pane_id}"
    target = ["-t", text] if text else []
    check = tmux.call_from(pane, command, *target)
    if check.returncode:
        return check.stderr.rstrip("\n")
    # display-message takes a pane, and prints nothing useful when there is none.
    listing = {"pane": ["display-message", "-p"], "window": ["list-panes", "-F"], "session": ["list-windows", "-F"]}[
        kind
    ]
    done = tmux.call_from(pane, listing[0], *target, listing[1], form)
    return (done.stdout or done.stderr).splitlines()[0]


VARIABLES = [
    "session_name",
    "window_name",
    "window_index",
    "pane_id",
    "pane_index",
    "pane_title",
    "pane_width",
    "pane_height",
]
VARIABLES += [
    "pane_active",
    "pane_left",
    "pane_top",
    "window_active",
    "window_panes",
    "window_zoomed_flag",
    "pane_dead",
]
VARIABLES += ["session_windows", "window_id", "session_id", "pane_in_mode", "window_layout", "session_created"]

FORMATS = [
    "#{pane_id}",
    "plain ## text #, #} #",
    "#S:#I.#P #W #T #D",
    "#x #z #[fg=red] ##[x] ###[y]",
    "#{nothing}|#{}|#{ }",
    "#{?pane_active,yes,no}",
    "#{?nothing,yes,no}",
    "#{?pane_dead,(dead),}",
    "#{?window_zoomed_flag,Z,#{?pane_active,A,-}}",
    "#{?#{==:#{pane_index},1},one,other}",
    "#{?pane_active,a#,b,c#}d}",
    "#{?1,a,b} #{?0,a,b} #{?,a,b} #{?x,a,b}",
    "#{?pane_active,only}",
    "x#{?pane_active}y",
    "#{==:a,a} #{==:a,b} #{!=:a,b} #{<:1,2} #{>:1,2} #{<=:b,b} #{>=:a,b}",
    "#{==:#{pane_width},#{pane_width}}",
    "#{==:a}z",
    "#{||:0,1} #{||:0,0} #{&&:1,1} #{&&:1,0} #{&&:#{pane_active},#{window_active}}",
    "#{m:lo*,#{window_name}} #{m:x*,#{window_name}} #{m/ri:^LOGS$,#{window_name}} #{m/r:o.s,#{window_name}}",
    "#{=3:window_name} #{=-3:window_name} #{=/3/…:window_name} #{=/-3/..:window_name} #{=20:window_name}",
    "#{=2:#{window_name}x}",
    "[#{p8:window_name}] [#{p-8:window_name}] [#{p2:window_name}]",
    "#{=3;p5:window_name}|",
    "#{n:window_name} #{w:window_name} #{n:#{pane_title}}",
    "#{s/o/0/:window_name} #{s/(l)(o)/\\2\\1/:window_name} #{s/O/0/i:window_name} #{s|o|/|:window_name}",
    "#{s/g/x/;=2:window_name}",
    "#{s/#{=1:window_name}/Q/:window_name}",
    "#{q:pane_title} | #{q/e:pane_title}",
    "#{l:#{pane_id}} #{l:a#,b} #{l:##}",
    "#{a:65}#{a:98}#{a:7}#{a:x}",
    "#{e|+|:1,2} #{e|-|:5,7} #{e|*|:3,4} #{e|/|:7,2} #{e|m|:7,3} #{e|/|f:7,2} #{e|/|f|4:22,7} #{e|==|:3,3} #{e|<|:3,4}",
    "#{e|*|:#{pane_width},2}",
    "#{E:window_name} #{E:pane_title}",
    "#{b:pane_title} #{d:pane_title}",
    "#{t:session_created}",
    "#{t/f/%Y:session_created}",
    "#{P:#{pane_index},} #{P:#{pane_id} }",
    "#{P:[#{pane_index}],<#{pane_index}>}",
    "#{W:#{window_index}:#{window_name} }",
    "#{W:#{window_name} ,*#{window_name} }",
    "#{W:#{P:#{window_index}.#{pane_index} }}",
    "#{S:#{session_name} }",
    "#{N:logs} #{N/w:nope} #{N/s:play} #{N/s:nope}",
    "#{unclosed",
    "a#{b",
    "#(echo never)x",
    "#{?#{m:*title*,#{pane_title}},#{=5:pane_title},none}",
    "%H stays in -F",
    "#{pane_id}#{pane_id} #{==:#{pane_id},#{pane_id}},#{window_panes}",
    "#{?#{||:#{pane_dead},#{pane_in_mode}},x,y}",
    "#{:pane_id} #{x:pane_id} #{=:pane_id} #{=x:pane_id}",
    "##{pane_id} ###{pane_id}",
    "#{session_windows}#{?session_windows,s,}",
]


def _scope(tmux: Tmux, pane: str) -> Scope:
    """The variables of one pane and of what lies around it, as tmux has them."""

    def scopes(rows: list[list[str]], active: int) -> list[Scope]:
        return [Scope(dict(zip(VARIABLES, row, strict=True)), is_active=row[active] == "1") for row in rows]

    form = "\x1f".join(f"#{{{name}}}" for name in VARIABLES)

    def ask(*arguments: str) -> list[list[str]]:
        return [line.split("\x1f") for line in tmux.run(*arguments, "-F", form).splitlines()]

    window, session = tmux.run("display-message", "-p", "-t", pane, "#{window_id} #{session_id}").split()
    pane_active, window_active = VARIABLES.index("pane_active"), VARIABLES.index("window_active")
    panes = scopes(ask("list-panes", "-t", window), pane_active)
    windows = []
    for each in scopes(ask("list-windows", "-t", session), window_active):
        inner = scopes(ask("list-panes", "-t", each.variables["window_id"]), pane_active)
        windows.append(Scope(each.variables, panes=inner, is_active=each.is_active))
    sessions = scopes(ask("list-sessions"), window_active)
    own = tmux.run("display-message", "-p", "-t", pane, form).split("\x1f")
    return Scope(dict(zip(VARIABLES, own, strict=True)), sessions=sessions, windows=windows, panes=panes)


@pytest.mark.parametrize("pane", ["%1", "%2"])
def test_a_format_gives_what_tmux_prints(pane: str, tmux: Tmux) -> None:
    scope = _scope(tmux, pane)
    wrong = []
    for text in FORMATS:
        theirs = tmux.run("list-panes", "-t", pane, "-f", f"#{{==:#{{pane_id}},{pane}}}", "-F", text)
        ours = expand(text, scope)
        if ours != theirs:
            wrong.append((text, ours, theirs))
    assert not wrong


def _random_format(chance: random.Random, depth: int = 0) -> str:
    def inner() -> str:
        return _random_format(chance, depth + 1)

    def name() -> str:
        return chance.choice(
            ["pane_id", "window_name", "pane_active", "pane_index", "nothing", "pane_dead", "window_layout"]
        )

    if depth > 2:
        return chance.choice(["a", "b#,c", "0", "", f"#{{{name()}}}", "x y"])
    return chance.choice(
        [
            lambda: f"#{{{name()}}}",
            lambda: f"{inner()}{inner()}",
            lambda: f"#{{?{name()},{inner()},{inner()}}}",
            lambda: f"#{{?{inner()},{inner()},{inner()}}}",
            lambda: f"#{{{chance.choice(['==', '!=', '<', '>', '<=', '>=', '||', '&&'])}:{inner()},{inner()}}}",
            lambda: f"#{{={chance.randint(-6, 6)}:{name()}}}",
            lambda: f"#{{=/{chance.randint(1, 4)}/...:{inner()}}}",
            lambda: f"#{{p{chance.randint(-9, 9)}:{name()}}}",
            lambda: f"#{{s/{chance.choice('aol%0')}/{chance.choice(['', 'Z', 'qq'])}/:{name()}}}",
            lambda: f"#{{{chance.choice('nwlEqbd')}:{name()}}}",
            lambda: f"#{{m:{chance.choice(['*', 'l*', '?'])},{inner()}}}",
            lambda: f"#{{P:{inner()}}}",
            lambda: chance.choice(["##", "#,", "#}", "#", "}", ",", ":", "#S", "#P", "#q", "#{", "plain"]),
        ]
    )()


def test_random_formats_give_what_tmux_prints(tmux: Tmux) -> None:
    scope = _scope(tmux, "%1")
    wrong = []
    for seed in range(250):
        text = _random_format(random.Random(seed))
        theirs = tmux.run("list-panes", "-t", "%1", "-f", "#{==:#{pane_id},%1}", "-F", text)
        if expand(text, scope) != theirs:
            wrong.append((text, expand(text, scope), theirs))
    assert not wrong


@pytest.mark.parametrize(
    ("call", "template"),
    [
        (("list-panes", "-t", "work:1"), formats.LIST_PANES),
        (("list-panes", "-s", "-t", "work"), formats.LIST_PANES_OF_SESSION),
        (("list-panes", "-a"), formats.LIST_ALL_PANES),
        (("list-windows", "-t", "work"), formats.LIST_WINDOWS),
        (("list-windows", "-a"), formats.LIST_ALL_WINDOWS),
        (("list-sessions",), formats.LIST_SESSIONS),
    ],
)
def test_without_a_format_the_same_is_printed(call: tuple[str, ...], template: str, tmux: Tmux) -> None:
    assert tmux.run(*call) == tmux.run(*call, "-F", template)


LINES = [
    ["split-window", "-y"],
    ["kill-pane", "x"],
    ["rename-window"],
    ["rename-window", "a", "b"],
    ["nonsense"],
    ["s"],
    ["list"],
    ["kill-s"],
    ["resize-pane", "1", "2"],
    ["has-session", "-q"],
    ["set-option"],
    ["set-option", "a", "b", "c"],
    ["list-panes", "-x"],
    ["wait-for"],
    ["select-layout", "a", "b"],
    ["display-message", "a", "b"],
]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_a_wrong_command_line_is_refused_in_the_words_of_tmux(words: list[str], tmux: Tmux) -> None:
    done = tmux.call(*words)
    assert done.returncode == 1
    with pytest.raises(DariError) as caught:
        parse_invocation(words)
    ours, theirs = caught.value.message, done.stderr.strip()
    if ours.startswith("ambiguous"):
        # We know fewer commands, so fewer are named.
        assert theirs.startswith(ours.split(":")[0])
    else:
        assert ours == theirs


def test_every_command_has_the_flags_that_tmux_lists(tmux: Tmux) -> None:
    listed = dict(_usage(line) for line in tmux.run("list-commands").splitlines())
    for name, spec in COMMANDS.items():
        alias, letters, valued = listed[name]
        assert spec.alias == alias, name
        ours = set(spec.template.replace(":", ""))
        ours_valued = {spec.template[at - 1] for at, char in enumerate(spec.template) if char == ":"}
        # Some flags are taken but not listed: -p of split-window, -P and -g of select-pane.
        assert letters | valued <= ours, name
        assert valued <= ours_valued and not letters & ours_valued, name


def _usage(line: str) -> tuple[str, tuple[str, set[str], set[str]]]:
    name, _, rest = line.partition(" ")
    alias = match[1] if (match := re.match(r"\((\w+)\)", rest)) else ""
    letters: set[str] = set()
    valued = set(re.findall(r"\[-(\w) [^\]]+\]", rest))
    for cluster in re.findall(r"\[-([\w|-]+)\]", rest):
        letters |= set(cluster.replace("|-", ""))
    return name, (alias, letters - valued, valued)
