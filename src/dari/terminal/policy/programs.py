"""What single programs do with their arguments: git, tmux, editors, and the scripts of sed and awk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from dari.terminal.policy.ast import Word
from dari.terminal.policy.options import has_option, option_values, split_options
from dari.terminal.policy.program_tables import (
    CODE,
    DOUBTFUL,
    GIT_FILES,
    GIT_GLOBAL,
    GIT_OPTIONS,
    GIT_RUNNERS,
    GIT_RUNS,
)
from dari.terminal.policy.shell_builtins import BuiltinReader

STREAMS = re.compile(r"-|/dev/(stdin|fd/.*)|/proc/.*/fd/.*")
_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)")
_TEXT = frozenset("aic")
_LABELS = frozenset("btT:")
_FILES = frozenset("rRwW")
_PLAIN = frozenset("=dDgGhHnNpPxzF")
_NUMBERED = frozenset("qQlLv")
_AWK_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?P<before>(?:^|[~(,{};!&|\n])\s*)/(?:[^/\\\n]|\\.)*/', re.MULTILINE)
_AWK_RUNS = re.compile(r"system\s*\(|getline\s*<|\||@\s*(load|include)|@\s*\w+\s*\(")
_AWK_STATEMENT = re.compile(r"[^;}\n]+")


class FilterError(Exception):
    """The program is none that we can read."""


def effects_of_awk(program: str) -> set[str]:
    """Of "run" and "write": what the program can do beside printing."""
    bare = _AWK_LITERAL.sub(lambda found: (found["before"] or "") + '""', program).replace("||", " ")
    effects = set()
    # A quote or a slash that is left may be that of a pattern which we took for something else.
    is_unclear = bare.replace('""', "").count('"') or ("/" in bare and re.search(r"(?<!\|)\|(?!\|)", program))
    if _AWK_RUNS.search(bare) or is_unclear:
        effects.add("run")
    if any(">" in each[0].partition("print")[2] for each in _AWK_STATEMENT.finditer(bare)):
        effects.add("write")
    return effects


def effects_of_sed(program: str) -> set[str]:
    """The same for sed; FilterError for what no sed that we know would take."""
    return _SedReader(program).read()


class _SedReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.effects: set[str] = set()

    def read(self) -> set[str]:
        while True:
            self._skip(" \t\n;")
            if self.position >= len(self.text):
                return self.effects
            self._addresses()
            self._command()

    def _addresses(self) -> None:
        while True:
            if match := _ADDRESS.match(self.text, self.position):
                self.position = match.end()
            elif self._here == "/" or (self._here == "\\" and len(self.text) > self.position + 1):
                if self._here == "\\":
                    self.position += 1
                self._delimited(1)
                self._skip("IM")
            else:
                break
            self._skip(" \t")
            if self._here != ",":
                break
            self.position += 1
        self._skip(" \t!")

    def _command(self) -> None:
        command = self._here
        self.position += 1
        if command in ("{", "}") or (command and command in _PLAIN):
            return
        if command == "#" or (command and command in _TEXT):
            self._line()
        elif command == "s":
            self._delimited(2)
            self._flags()
        elif command == "y":
            self._delimited(2)
        elif command and command in _LABELS:
            self.position = min(self._find(";"), self._find("\n"))
        elif command and command in _FILES:
            name = self._line().strip()
            if command in "wW" and name not in ("/dev/stdout", "/dev/stderr"):
                self.effects.add("write")
        elif command == "e":
            self._line()
            self.effects.add("run")
        elif command and command in _NUMBERED:
            self._skip(" \t0123456789.")
        else:
            raise FilterError(f"sed has no command {command!r}")

    def _flags(self) -> None:
        while self._here and self._here in "gpiImMe0123456789":
            if self._here == "e":
                self.effects.add("run")
            self.position += 1
        if self._here == "w":
            if self._line()[1:].strip() not in ("/dev/stdout", "/dev/stderr"):
                self.effects.add("write")
        elif self._here not in ("", ";", "\n", "}", " ", "\t", "#"):
            raise FilterError(f"the s command of sed has no flag {self._here!r}")

    def _delimited(self, parts: int) -> None:
        """`/…/` or `/…/…/` with any delimiter, which also ends it inside brackets, as in some seds."""
        delimiter = self._here
        if delimiter in ("", "\n", "\\"):
            raise FilterError("a pattern without a delimiter")
        self.position += 1
        for _ in range(parts):
            while self._here != delimiter:
                if not self._here:
                    raise FilterError("a pattern is not closed")
                self.position += 2 if self._here == "\\" else 1
            self.position += 1

    def _line(self) -> str:
        """The rest of the line; one that ends in a backslash goes on."""
        start = self.position
        while True:
            end = self._find("\n")
            self.position = min(end + 1, len(self.text))
            if end >= len(self.text) or self.text[end - 1] != "\\":
                return self.text[start:end]

    def _find(self, what: str) -> int:
        found = self.text.find(what, self.position)
        return len(self.text) if found < 0 else found

    def _skip(self, characters: str) -> None:
        while self._here and self._here in characters:
            self.position += 1

    @property
    def _here(self) -> str:
        return self.text[self.position : self.position + 1]


_KEYS = {"Enter": "\n", "C-m": "\n", "C-j": "\n", "KPEnter": "\n", "Space": " ", "Tab": "\t"}
_STARTS = (
    *("new-session", "new-window", "split-window", "respawn-pane", "respawn-window", "run-shell", "display-popup"),
    "send-keys",
)
_STEERS = (
    *("if-shell", "pipe-pane", "source-file", "set-hook", "bind-key", "command-prompt", "confirm-before"),
    "paste-buffer",
    *("display-menu", "choose-tree", "choose-client", "choose-buffer", "lock-server", "lock-client", "lock-session"),
)
_TMUX_ALIASES = {
    "new": "new-session",
    "neww": "new-window",
    "splitw": "split-window",
    "respawnp": "respawn-pane",
    "respawnw": "respawn-window",
    "run": "run-shell",
    "popup": "display-popup",
    "send": "send-keys",
    "if": "if-shell",
    "pipep": "pipe-pane",
    "source": "source-file",
    "bind": "bind-key",
    "confirm": "confirm-before",
    "menu": "display-menu",
    "pasteb": "paste-buffer",
    "lock": "lock-server",
}
_TMUX_HARMLESS = frozenset(
    ("set", "setw", "set-option", "set-window-option", "show", "display", "display-message", "ls")
)
_TMUX_SETTINGS = re.compile(r"^(default-command|default-shell|editor|copy-command|lock-command|command-alias)")
_EDITOR_RUNS = re.compile(
    r"\+?[^!]*(?:(?:^|[^A-Za-z!])!\s*\S|\b(?:r|w|read|write)\s*!\s*\w)|.{0,2000}?(?:\bsystem(?:list)?\(|\bterm(?:inal)?\s+\S"
    r"|job_?start\(|termopen\(|libcall\w*\(|os\.execute|io\.popen)",
    re.DOTALL,
)
_TMUX_VALUES = "-L -S -f -T -c"
_STARTING_VALUES = "-c -t -s -n -x -y -e -F -l -p"
_RUNNING_VALUES = "-t -d -c -b -e -h -s -w -x -y -T -S"


def program(name: str) -> str:
    """The name without its directory: what the program is, whatever path it is called by."""
    return name.rstrip("/").rsplit("/", 1)[-1]


class ProgramReader(BuiltinReader):
    """What programs with options and languages of their own would run."""

    def doubtful_options(self, name: str, arguments: Sequence[Word]) -> None:
        for option in CODE.get(name, "").split():
            if has_option(arguments, option):
                self.unread.append(f"{name} {option} runs a program that is not read")
        for option in DOUBTFUL.get(name, ()):
            if has_option(arguments, option) or any(word.text.startswith(option + "=") for word in arguments):
                self.doubts.append(f"{name} {option} can start another program")
        if name in ("vim", "vi", "nvim", "view", "ex", "less", "more") and any(
            re.match(r"\+[^\d/]", word.text) for word in arguments
        ):
            self.unread.append(f"{name} +… runs commands of the editor, which can start programs")
        if name in ("vim", "vi", "nvim", "view", "ex", "less", "more") and any(
            _EDITOR_RUNS.match(word.text) for word in arguments
        ):
            self.doubts.append(f"{name} would start another program")
        if name in ("ssh", "scp", "sftp") and any(
            re.match(
                r"(-[A-Za-z0-9]*o)?\s*(ProxyCommand|LocalCommand|KnownHostsCommand|PermitLocalCommand)", word.text, re.I
            )
            for word in arguments
        ):
            self.doubts.append(f"{name} -o …Command starts another program")
        if name in ("apt", "apt-get", "aptitude") and any(re.search(r"Invoke|::Run", word.text) for word in arguments):
            self.doubts.append(f"{name} -o …Invoke starts another program")
        if name == "socat" and any(re.search(r"(^|!!)\s*(EXEC|SYSTEM|SHELL):", word.text, re.I) for word in arguments):
            self.doubts.append(f"{name} can start programs that are not read")

    def filter(self, name: str, arguments: Sequence[Word]) -> None:
        """sed and awk."""
        is_awk = "awk" in name
        options = split_options(arguments, "-f -v -F --file" if is_awk else "-f -e -l --expression --file")
        if any(not value.is_known and "<(" in value.text for value in option_values(arguments, ["-f", "--file"])):
            self.doubts.append(f"{name} -f runs what it reads, which is not known")
        if has_option(arguments, "--file") or any(re.match(r"-[A-Za-hj-z]*f", word.text) for word in options.given):
            self.unread.append(f"{name} -f runs a program from a file")
            return
        if is_awk and has_option(arguments, "--exec"):
            self.unread.append(f"{name} -E runs a program from a file")
        programs = option_values(arguments, ["-e", "--source"] if is_awk else ["-e", "--expression"])
        for word in [each for each in programs if each.text] or list(options.plain[:1]):
            self._filter_program(name, word, is_awk)

    def _filter_program(self, name: str, word: Word, is_awk: bool) -> None:
        if not word.is_known and re.fullmatch(r'"?(\$\(.*\)|`.*`)"?', word.text, re.DOTALL):
            self.doubts.append(f"{name} runs what a command prints, which is not known")
            return
        if not word.is_known and re.search(r"[`(]", word.text) is None:
            # What a variable holds stands inside the program; a command in it would be an odd value.
            self.unread.append(f"a program of {name} is known only when it runs")
            return
        try:
            effects = effects_of_awk(word.text) if is_awk else effects_of_sed(word.text)
        except FilterError as error:
            self.unread.append(f"a program of {name} cannot be read: {error}")
            return
        if "run" in effects:
            self.doubts.append(f"a program of {name} can start another program")
        elif effects:
            self.unread.append(f"a program of {name} writes a file")

    def git(self, arguments: Sequence[Word], depth: int) -> None:
        options = split_options(arguments, "-c -C --git-dir --work-tree --namespace --exec-path --config-env", True)
        for option in GIT_GLOBAL:
            if has_option(options.given, option):
                self.doubts.append(f"git {option} can start another program")
        before = arguments[: len(arguments) - len(options.plain)]
        for setting in option_values([word for word in before if word.text[:2] != "--"], ["-c"]):
            self._git_setting(setting, depth)
        if not options.plain:
            return
        sub, rest = options.plain[0].text, options.plain[1:]
        words = {word.text for word in rest}
        if not options.plain[0].is_known:
            self.doubts.append("the subcommand of git is known only when it runs")
        if sub == "config":
            self._git_config(rest, depth)
        elif sub == "clone":
            for setting in option_values(rest, ["-c", "--config"]):
                self._git_setting(setting, depth)
        elif sub in GIT_RUNNERS:
            self.unread.append(f"git {sub} can start another program")
            self.guess(tuple(options.plain), "sh", depth)
        elif sub == "rebase" and words & {"-i", "--interactive"}:
            self.unread.append("git rebase -i opens a list of steps, which may run programs")
        elif (sub == "bisect" and "run" in words) or (sub == "submodule" and "foreach" in words):
            at = next(index for index, word in enumerate(rest) if word.text in ("run", "foreach"))
            inner = [word for word in rest[at + 1 :] if word.text not in ("--recursive", "-q", "--quiet")]
            self.text(Word(" ".join(map(str, inner)), all(word.is_known for word in inner)), "sh", depth)
        for option in GIT_OPTIONS.get(sub, "").split():
            if has_option(rest, option):
                self.doubts.append(f"git {sub} {option} can start another program")
        if any(re.match(r"(--[a-z-]+=)?ext::", word.text) for word in rest):
            self.doubts.append("git ext:: starts another program")

    def _git_config(self, rest: Sequence[Word], depth: int) -> None:
        words = {word.text for word in rest}
        if words & {"-e", "--edit", "edit"}:
            self.unread.append("git config opens an editor on what later git commands run")
            return
        plain = [
            word
            for word in split_options(rest, "-f --file --blob --type -t --default --comment --value --url").plain
            if word.text not in ("set", "get", "list")
        ]
        if words & {"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list", "--unset"} or len(plain) < 2:
            return
        value = plain[1]
        self._git_setting(Word(f"{plain[0].text}={value.text}", value.is_known and plain[0].is_known), depth)

    def _git_setting(self, setting: Word, depth: int) -> None:
        """`key=value`: a value that git would run is judged as the command that it is."""
        key, _, value = setting.text.partition("=")
        if "ext::" in setting.text:
            self.doubts.append("git ext:: starts another program")
        if not any(fnmatchcase(key.lower(), pattern) for pattern in GIT_RUNS):
            if not setting.is_known and not re.fullmatch(r"[\w.-]+", key):
                self.doubts.append("which setting of git is changed is known only then")
            return
        if not setting.is_known or key.lower() in GIT_FILES or key.lower().startswith("includeif."):
            self.doubts.append(f"git would run what {key} names")
            return
        text = value.strip()
        if key.lower().startswith("alias."):
            text = text[1:] if text.startswith("!") else f"git {text}"
        elif key.lower().startswith("credential."):
            text = text[1:] if text.startswith("!") else ""
        if text and text not in ("true", "false"):
            self.text(Word(text), "sh", depth)

    def multiplexer(self, name: str, arguments: Sequence[Word], depth: int) -> None:
        """tmux, screen and ourselves: other terminals, in which something is started or typed."""
        words = list(arguments)
        if name == "cruxd":
            return
        if name == "crux":
            while words and words[0].text.startswith("-"):
                words = words[2 if words[0].text == "--socket" else 1 :]
            self._crux(words, depth)
        elif name == "screen":
            if any(word.text in ("-X", "-c") for word in words):
                self.doubts.append("screen -X types into another terminal")
            self._run_in(split_options(words, "-S -t -e -h -p -s -T -L", stop_at_plain=True).plain, depth)
        else:
            self._tmux(words, depth)

    def _crux(self, words: Sequence[Word], depth: int) -> None:
        if not words:
            return
        sub, rest = words[0].text, words[1:]
        if sub == "cli":
            self._crux(rest, depth)
        elif sub == "tmux":
            self._tmux(rest, depth)
        elif sub in ("exec", "send-text", "send-keys"):
            plain = split_options(rest, "-t --pane-id --timeout --socket").plain
            known = [word for word in plain if word.text not in _KEYS]
            self.text(Word(" ".join(map(str, known)), all(word.is_known for word in known)), "bash", depth)
        elif sub in ("split-pane", "new-window") and "--" in map(str, rest):
            self._run_in(rest[[word.text for word in rest].index("--") + 1 :], depth)
        elif sub in ("attach", "kill-server"):
            self.doubts.append(f"crux {sub} acts as the person at the keyboard")

    def _tmux(self, words: Sequence[Word], depth: int) -> None:
        options = split_options(words, _TMUX_VALUES, stop_at_plain=True)
        for value in option_values(words[: len(words) - len(options.plain)], ["-c"]):
            self.text(value, "sh", depth)
        if any("#(" in word.text for word in options.plain):
            self.doubts.append("tmux runs what stands in #( )")
        if any(not value.is_known or STREAMS.fullmatch(value.text) for value in option_values(words, ["-f"])):
            self.doubts.append("tmux -f runs what it reads, which is not known")
        steps: list[list[Word]] = [[]]
        for word in options.plain:
            if rest := word.text.removesuffix(";").removesuffix("\\") if word.text.endswith(";") else word.text:
                steps[-1].append(word if rest == word.text else replace(word, text=rest))
            if word.text.endswith(";"):
                steps.append([])
        for step in filter(None, steps):
            self._tmux_step(step, depth)

    def _tmux_step(self, step: Sequence[Word], depth: int) -> None:
        sub = _TMUX_ALIASES.get(step[0].text, step[0].text)
        if sub not in _TMUX_HARMLESS:
            # tmux takes any beginning of a command's name.
            sub = next((name for name in (*_STARTS, *_STEERS) if name.startswith(sub)), sub)
        if sub == "send-keys":
            if has_option(step, "-H"):
                self.doubts.append("tmux send-keys -H types what is written as numbers")
            if any("pipe" in word.text for word in step) and has_option(step, "-X"):
                self.doubts.append("tmux send-keys -X copy-pipe starts a program")
            self._typed(split_options(step[1:], "-t -N", stop_at_plain=True).plain, depth)
        elif sub in _STARTS:
            valued = _RUNNING_VALUES if sub in ("run-shell", "display-popup") else _STARTING_VALUES
            self._run_in(split_options(step[1:], valued, stop_at_plain=True).plain, depth)
        elif sub in _STEERS or not step[0].is_known:
            self.doubts.append(f"tmux {sub} can start programs that are not read")
        elif any(_TMUX_SETTINGS.search(word.text) for word in step):
            self.doubts.append(f"tmux {sub} changes what tmux runs")

    def _typed(self, words: Sequence[Word], depth: int) -> None:
        text = "".join(
            _KEYS.get(word.text, word.text) for word in words if not re.fullmatch(r"[CM]-\w|Escape", word.text)
        )
        self.text(Word(text, all(word.is_known for word in words)), "bash", depth)

    def _run_in(self, words: Sequence[Word], depth: int) -> None:
        if words:
            self.text(Word(" ".join(map(str, words)), all(word.is_known for word in words)), "sh", depth)
