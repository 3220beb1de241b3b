"""The command line of tmux 3.3a, read as tmux reads it: which command, which flags, which words.

A template lists the flags of a command; one with `:` takes a value. The numbers are how many words may follow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dari.errors import InvalidInput


class CommandSpec(NamedTuple):
    alias: str
    template: str
    least: int
    most: int
    """-1: as many as one likes."""


_NONE = (0, 0)
COMMANDS: dict[str, CommandSpec] = {
    "attach-session": CommandSpec("attach", "c:dEf:rt:x", *_NONE),
    "bind-key": CommandSpec("bind", "nrN:T:", 1, -1),
    "break-pane": CommandSpec("breakp", "abdPF:n:s:t:", *_NONE),
    "capture-pane": CommandSpec("capturep", "ab:CeE:JNpPqS:t:", *_NONE),
    "clear-history": CommandSpec("clearhist", "t:", *_NONE),
    "copy-mode": CommandSpec("", "eHMs:t:uq", *_NONE),
    "delete-buffer": CommandSpec("deleteb", "b:", *_NONE),
    "detach-client": CommandSpec("detach", "aE:s:t:P", *_NONE),
    "display-message": CommandSpec("display", "ac:d:INpt:F:v", 0, 1),
    "has-session": CommandSpec("has", "t:", *_NONE),
    "if-shell": CommandSpec("if", "bFt:", 2, 3),
    "join-pane": CommandSpec("joinp", "bdfhvp:l:s:t:", *_NONE),
    "kill-pane": CommandSpec("killp", "at:", *_NONE),
    "kill-server": CommandSpec("", "", *_NONE),
    "kill-session": CommandSpec("", "aCt:", *_NONE),
    "kill-window": CommandSpec("killw", "at:", *_NONE),
    "last-pane": CommandSpec("lastp", "det:Z", *_NONE),
    "last-window": CommandSpec("last", "t:", *_NONE),
    "list-buffers": CommandSpec("lsb", "F:f:", *_NONE),
    "list-clients": CommandSpec("lsc", "F:t:", *_NONE),
    "list-commands": CommandSpec("lscm", "F:", 0, 1),
    "list-keys": CommandSpec("lsk", "1aNP:T:", 0, 1),
    "list-panes": CommandSpec("lsp", "aF:f:st:", *_NONE),
    "list-sessions": CommandSpec("ls", "F:f:", *_NONE),
    "list-windows": CommandSpec("lsw", "aF:f:t:", *_NONE),
    "load-buffer": CommandSpec("loadb", "b:t:w", 1, 1),
    "move-pane": CommandSpec("movep", "bdfhvp:l:s:t:", *_NONE),
    "move-window": CommandSpec("movew", "abdkrs:t:", *_NONE),
    "new-session": CommandSpec("new", "Ac:dDe:EF:f:n:Ps:t:x:Xy:", 0, -1),
    "new-window": CommandSpec("neww", "abc:de:F:kn:PSt:", 0, -1),
    "next-layout": CommandSpec("nextl", "t:", *_NONE),
    "next-window": CommandSpec("next", "at:", *_NONE),
    "paste-buffer": CommandSpec("pasteb", "db:prs:t:", *_NONE),
    "pipe-pane": CommandSpec("pipep", "IOot:", 0, 1),
    "previous-layout": CommandSpec("prevl", "t:", *_NONE),
    "previous-window": CommandSpec("prev", "at:", *_NONE),
    "refresh-client": CommandSpec("refresh", "A:B:cC:Df:F:lLRSt:U", 0, 1),
    "rename-session": CommandSpec("rename", "t:", 1, 1),
    "rename-window": CommandSpec("renamew", "t:", 1, 1),
    "resize-pane": CommandSpec("resizep", "DLMRTt:Ux:y:Z", 0, 1),
    "resize-window": CommandSpec("resizew", "aADLRt:Ux:y:", 0, 1),
    "respawn-pane": CommandSpec("respawnp", "c:e:kt:", 0, -1),
    "respawn-window": CommandSpec("respawnw", "c:e:kt:", 0, -1),
    "rotate-window": CommandSpec("rotatew", "Dt:UZ", *_NONE),
    "run-shell": CommandSpec("run", "bd:Ct:", 0, 1),
    "save-buffer": CommandSpec("saveb", "ab:", 1, 1),
    "select-layout": CommandSpec("selectl", "Enopt:", 0, 1),
    "select-pane": CommandSpec("selectp", "DdegLlMmP:RT:t:UZ", *_NONE),
    "select-window": CommandSpec("selectw", "lnpTt:", *_NONE),
    "send-keys": CommandSpec("send", "FHlMN:Rt:X", 0, -1),
    "set-buffer": CommandSpec("setb", "ab:t:n:w", 0, 1),
    "set-environment": CommandSpec("setenv", "Fhgrt:u", 1, 2),
    "set-hook": CommandSpec("", "agpRt:uw", 1, 2),
    "set-option": CommandSpec("set", "aFgopqst:uUw", 1, 2),
    "set-window-option": CommandSpec("setw", "aFgoqt:u", 1, 2),
    "show-buffer": CommandSpec("showb", "b:", *_NONE),
    "show-environment": CommandSpec("showenv", "hgst:", 0, 1),
    "show-hooks": CommandSpec("", "gpt:w", 0, 1),
    "show-options": CommandSpec("show", "AgHpqst:vw", 0, 1),
    "show-window-options": CommandSpec("showw", "gvt:", 0, 1),
    "source-file": CommandSpec("source", "Fnqv", 1, -1),
    "split-window": CommandSpec("splitw", "bc:de:fF:hIl:p:Pt:vZ", 0, -1),
    "start-server": CommandSpec("start", "", *_NONE),
    "swap-pane": CommandSpec("swapp", "dDs:t:UZ", *_NONE),
    "swap-window": CommandSpec("swapw", "ds:t:", *_NONE),
    "switch-client": CommandSpec("switchc", "c:EFlnpt:rT:Z", *_NONE),
    "unbind-key": CommandSpec("unbind", "anqT:", 0, 1),
    "wait-for": CommandSpec("wait", "LSU", 1, 1),
}
MAX_DIGITS = 18
_SERVER_FLAGS = "2c:CDf:lL:NqS:T:uUvV"


@dataclass(frozen=True, slots=True)
class TmuxCall:
    """One command: `flags` maps each letter to its values, in order; a flag that takes none has empty ones."""

    name: str
    flags: dict[str, tuple[str, ...]]
    words: tuple[str, ...]

    def has(self, flag: str) -> bool:
        return flag in self.flags

    def get(self, flag: str) -> str | None:
        """The last value of a flag; None when it was not given, or given without one."""
        return self.flags[flag][-1] if self.flags.get(flag) else None

    def count(self, flag: str) -> int:
        return len(self.flags.get(flag, ()))


@dataclass(frozen=True, slots=True)
class Invocation:
    """What `tmux …` was asked: flags of the program itself, then the commands between `;`. None: show new-session."""

    flags: dict[str, tuple[str, ...]]
    calls: tuple[TmuxCall, ...]


def parse_invocation(arguments: Sequence[str]) -> Invocation:
    """The words after `tmux`; InvalidInput with the message that tmux prints."""
    flags, rest = _split_flags(arguments, _SERVER_FLAGS, "tmux", is_server=True)
    return Invocation(flags, tuple(parse_call(words) for words in split_commands(rest)))


def split_commands(arguments: Sequence[str]) -> list[list[str]]:
    """Words apart at `;`, which may stand alone or end a word; `\\;` is a plain `;`."""
    commands: list[list[str]] = [[]]
    for word in arguments:
        ends = False
        if word.endswith(";"):
            if word.endswith("\\;"):
                word = word[:-2] + ";"
            else:
                word, ends = word[:-1], True
        if word or not ends:
            commands[-1].append(word)
        if ends:
            commands.append([])
    return [command for command in commands if command]


def parse_call(words: Sequence[str]) -> TmuxCall:
    """One command with its flags and words."""
    name = find_command(words[0])
    spec = COMMANDS[name]
    flags, rest = _split_flags(words[1:], spec.template, name)
    if len(rest) < spec.least:
        raise _refused(f"command {name}: too few arguments (need at least {spec.least})")
    if 0 <= spec.most < len(rest):
        raise _refused(f"command {name}: too many arguments (need at most {spec.most})")
    return TmuxCall(name, flags, tuple(rest))


def find_command(word: str) -> str:
    """A command by name, alias, or a start of its name that only it has."""
    for name, spec in COMMANDS.items():
        if word == name or (word and word == spec.alias):
            return name
    found = [name for name in COMMANDS if name.startswith(word)] if word else []
    if len(found) == 1:
        return found[0]
    if found:
        raise _refused(f"ambiguous command: {word}, could be: {', '.join(found)}")
    raise _refused(f"unknown command: {word}")


def read_number(text: str, what: str, least: int, most: int, after: str = "") -> int:
    """A whole number between the two; InvalidInput says as tmux does what is wrong with it."""
    if not re.fullmatch("[+-]?[0-9]+", text):
        problem = "invalid"
    elif (number := int(text[: MAX_DIGITS + 1])) < least:
        problem = "too small"
    elif number > most:
        problem = "too large"
    else:
        return number
    raise InvalidInput(f"{what} {problem}{after}", f"write a number from {least} to {most}")


def _split_flags(
    arguments: Sequence[str], template: str, name: str, is_server: bool = False
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    flags: dict[str, tuple[str, ...]] = {}
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not word.startswith("-") or word == "-":
            break
        index += 1
        if word == "--":
            break
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            at = template.find(letter) if letter != ":" else -1
            if at < 0:
                raise _refused(
                    f"command {name}: unknown flag -{letter}" if not is_server else f"unknown option -- '{letter}'"
                )
            if template[at + 1 : at + 2] != ":":
                flags[letter] = (*flags.get(letter, ()), "")
                continue
            if letters:
                value, letters = [letters], ""
            else:
                # A flag at the very end stands there without its value; tmux 3.3a takes that.
                value = list(arguments[index : index + 1])
                index += 1
            flags[letter] = (*flags.get(letter, ()), *value)
    return flags, list(arguments[index:])


def _refused(message: str) -> InvalidInput:
    return InvalidInput(message, "see `man tmux`; `crux tmux` takes the commands of tmux 3.3a that agent teams use")
