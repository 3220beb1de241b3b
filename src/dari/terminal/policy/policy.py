"""The verdict on a text before it is sent to a shell: allow, ask a person, or deny, each with its reason.

A guard-rail, not a wall: a program that is allowed can do what it likes. See docs/guide/terminal-policy.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from dari.terminal.engine.input_encoding import PASTE_CONTROLS
from dari.terminal.policy.ast import Dialect, Possible, ShellError, SimpleCommand
from dari.terminal.policy.commands_run import CommandsRun, find_commands_run
from dari.terminal.policy.config import Security
from dari.terminal.policy.options import option_values
from dari.terminal.policy.path_policy import PathPolicy, is_below
from dari.terminal.policy.patterns import CommandPattern, watch
from dari.terminal.policy.program_tables import BUILTINS
from dari.terminal.policy.programs import program

Decision = Literal["allow", "ask", "deny"]

HARMFUL = frozenset(("rm", "chmod", "chown", "chgrp", "shred", "dd", "cp", "mv", "tee", "crux", "dari"))
"""Programs that `_harm` knows something about."""
_ORDER: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}
_DISKS = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md)\w*")
_STARTUP = re.compile(
    r"(^|/)(\.(bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|"
    r"inputrc|vimrc|exrc|emacs|gitconfig|tmux\.conf|screenrc|netrc|npmrc|pypirc|curlrc|wgetrc|gdbinit|lldbinit|lesskey|"
    r"xinitrc|xprofile|xsession|xsessionrc|pam_environment)|\.ssh/[^/]*|authorized_keys|\.git/config|config\.fish|"
    r"crux\.toml|crontab)$|(^|/)(\.git/hooks/|sudoers|\.vim/|\.emacs\.d/|\.local/bin/|\.cargo/(bin/|config)|"
    r"\.config/(fish|git|nvim|autostart|systemd|environment\.d|crux)/)|^/dev/(tcp|udp)/|^/etc/"
)
_OURS = re.compile(r"__crux\w*|\b7701;")
_TOKENS = re.compile(r"(^|/)\.?crux/(cli|app|mcp|http)\.token$")
_OUR_FOLDER = re.compile(r"(^|/)\.?crux/")
_ROOTS = re.compile(
    r"/|/\*|~|~/|~/\*|\$HOME/?|\$\{HOME\}/?|/(bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|sys|usr|var)(/\*?)?"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`commands`: all that the text would run, as far as is known; `hint`: the next step when it is not allowed."""

    decision: Decision
    reason: str
    commands: tuple[str, ...] = ()
    hint: str = ""

    @property
    def is_allowed(self) -> bool:
        return self.decision == "allow"


class Policy:
    """Judges texts by one set of settings. It runs nothing and changes nothing."""

    def __init__(self, security: Security | None = None, home: Path | None = None) -> None:
        self.security = Security() if security is None else security
        self._home = Path.home() if home is None else home
        self._allowed = [CommandPattern.of(text) for text in self.security.allowed_commands]
        self._dangerous = [CommandPattern.of(text) for text in self.security.dangerous_patterns]
        self._denied = [CommandPattern.of(text) for text in self.security.denied_patterns]
        self._watched = watch([*self._dangerous, *self._denied])

    def judge(self, text: str, cwd: str, dialect: Dialect = "bash") -> Verdict:
        """What to do with `text` if it is sent with Enter to a shell whose directory is `cwd`."""
        findings: list[tuple[Decision, str, str]] = []
        if control := PASTE_CONTROLS.search(text):
            return Verdict("ask", f"it holds the control character {control[0]!r}", (), "send keys and text apart")
        if own := _OURS.search(text):
            findings.append(("ask", f"it uses {own[0]}, which is the terminal's own", "use another name"))
        try:
            found = find_commands_run(text, dialect)
        except ShellError as error:
            return Verdict("ask", f"it cannot be read as {dialect}: {error}", (), "send one complete, plain command")
        except RecursionError:
            return Verdict("ask", "it is nested too deeply to read", (), "send one complete, plain command")
        findings += [("ask", doubt, "write the command out plainly") for doubt in found.doubts]
        if self._allowed:
            findings += [("ask", why, "a person can agree, or write the command out plainly") for why in found.unread]
        findings += self._judge_commands(found)
        findings += self._judge_places(found, cwd)
        commands = tuple(str(command) for command in found.commands if command.words)
        if not findings:
            return Verdict("allow", "every command is allowed" if commands else "it runs nothing", commands)
        decision, reason, hint = max(findings, key=lambda finding: _ORDER[finding[0]])
        return Verdict(decision, reason, commands, hint)

    def judge_danger(self, text: str, cwd: str) -> Verdict:
        """Say only whether a line would be denied, or is dangerous, as a command; any other line is allowed."""
        if not any(pattern.is_named_in(text) for pattern in (*self._dangerous, *self._denied)):
            return Verdict("allow", "it names nothing dangerous")
        try:
            found = find_commands_run(text)
        except (ShellError, RecursionError):
            return Verdict("allow", "it is not a shell command")
        lists = Policy(msgspec.structs.replace(self.security, allowed_commands=(), allowed_directories=()), self._home)
        findings = lists._judge_commands(found)
        if not findings:
            return Verdict("allow", "it is not dangerous")
        decision, reason, hint = max(findings, key=lambda finding: _ORDER[finding[0]])
        return Verdict(decision, reason, (), hint)

    def _judge_commands(self, found: CommandsRun) -> list[tuple[Decision, str, str]]:
        findings: list[tuple[Decision, str, str]] = []
        calls = Counter(
            command.inside for command in found.commands if command.inside and command.name == command.inside
        )
        for name, count in calls.items():
            if count > 1:
                findings.append(("deny", f"the function {name} calls itself {count} times", "it would not end"))
        findings += self._judge_possible(found.possible)
        for command in found.commands:
            if command.words:
                findings += self._judge_command(command, found.functions)
            for redirect in command.redirects:
                if redirect.writes and _DISKS.match(redirect.target.text):
                    findings.append(("deny", f"it writes to the disk {redirect.target.text}", "write to a file"))
                elif redirect.writes and _STARTUP.search(redirect.target.text):
                    findings.append(("ask", f"it writes to {redirect.target.text}", "a person has to agree"))
        return findings

    def _judge_possible(self, possible: Sequence[Possible]) -> list[tuple[Decision, str, str]]:
        """Commands that may begin somewhere among words: the worst that one of them would be, once."""
        worst: dict[Decision, tuple[Decision, str, str]] = {}
        any_certain = any(each.is_certain for each in possible)
        for each in possible:
            if not (self._watched(each.name) or program(each.name) in HARMFUL):
                continue
            denied = next(
                (f"matches the denied pattern {one.text!r}" for one in self._denied if one.finds(each.command)), ""
            )
            decision: Decision = "deny" if each.is_certain else "ask"
            why = _harm(each.command) or denied
            if not why:
                decision = "ask"
                why = next(
                    (
                        f"matches the dangerous pattern {one.text!r}"
                        for one in self._dangerous
                        if one.finds(each.command)
                    ),
                    "",
                )
            if why and decision not in worst:
                may = "" if each.is_certain else ", which may be run,"
                worst[decision] = (decision, f"{_shortened(str(each.command))!r}{may} {why}", self._place)
            if worst.keys() >= {"ask", "deny"} or (worst and not any_certain):
                break
        return list(worst.values())

    def _judge_command(self, command: SimpleCommand, functions: frozenset[str]) -> list[tuple[Decision, str, str]]:
        findings: list[tuple[Decision, str, str]] = []
        shown = _shortened(str(command))
        if harm := _harm(command):
            findings.append(("deny", f"{shown!r} {harm}", "name the target more closely"))
        if kept := _startup_file(command):
            findings.append(("ask", f"{shown!r} writes to {kept}", "a person has to agree"))
        if self._watched(command.name or ""):
            for pattern in self._denied:
                if pattern.finds(command):
                    findings.append(("deny", f"{shown!r} matches the denied pattern {pattern.text!r}", self._place))
            for pattern in self._dangerous:
                if pattern.finds(command):
                    findings.append(("ask", f"{shown!r} matches the dangerous pattern {pattern.text!r}", self._place))
        if secret := _token(command):
            findings.append(("ask", f"{shown!r} reads {secret}, with which one can act as a person", self._place))
        is_listed = (
            not self._allowed
            or command.is_carrier
            or _is_harmless(command)
            or any(pattern.allows(command) for pattern in self._allowed)
        )
        if command.name and command.name not in functions and not is_listed:
            findings.append(("ask", f"{shown!r} is not in allowed_commands", self._place))
        return findings

    def _judge_places(self, found: CommandsRun, cwd: str) -> list[tuple[Decision, str, str]]:
        limits = self.security.allowed_directories
        if not limits:
            return []
        findings: list[tuple[Decision, str, str]] = []
        hint = "stay below " + ", ".join(limits)
        places = PathPolicy(cwd, self._home)
        if not is_below(places.directories[0], limits):
            findings.append(("deny", f"the pane is in {places.directories[0]}, outside allowed_directories", hint))
        for command in found.commands:
            for place in places.of(command):
                if place.path is None:
                    findings.append(("ask", f"where {_shortened(place.word)!r} leads is known only then", hint))
                elif not is_below(place.path, limits):
                    findings.append(
                        ("deny", f"{_shortened(place.word)!r} is {place.path}, outside allowed_directories", hint)
                    )
        return findings

    @property
    def _place(self) -> str:
        return f"a person can agree, or change [mcp.security] in {self.security.source or 'crux.toml'}"


def _is_harmless(command: SimpleCommand) -> bool:
    """A builtin that only changes or tells something inside the shell, and writes no file."""
    written = [each.target.text for each in command.redirects if each.writes]
    return command.name in BUILTINS and all(name in ("/dev/null", "/dev/stdout", "/dev/stderr") for name in written)


def _token(command: SimpleCommand) -> str:
    """The file with a token of ours among the words."""
    words = [*command.words, *(each.target for each in command.redirects)]
    return next((word.text for word in words if _TOKENS.search(word.text) or _is_any_of_ours(word.text)), "")


def _is_any_of_ours(text: str) -> bool:
    """Whether a part of the text is a pattern for files in the daemon's folder."""
    for part in text.split() if "crux/" in text and "*" in text else ():
        if (match := _OUR_FOLDER.search(part)) and "*" in part[match.end() :]:
            return True
    return False


def _harm(command: SimpleCommand) -> str:
    """What makes the command one that is never meant, with the words that were found on it."""
    name = program(command.name or "")
    arguments = [word.text for word in command.words[1:]]
    if name in ("crux", "dari") and "approvals" in arguments and {"approve", "deny"} & set(arguments):
        return "answers in the place of a person"
    letters = {letter for word in arguments if re.fullmatch(r"-[A-Za-z]+", word) for letter in word[1:]}
    is_recursive = bool(letters & {"r", "R"}) or any(word.startswith("--recursive") for word in arguments)
    roots = [
        word
        for word in arguments
        if not word.startswith("-") and _ROOTS.fullmatch(re.sub(r"/\.?(?=/)|/\.$", "", word) or "/")
    ]
    if name in ("rm", "chmod", "chown", "chgrp", "shred") and is_recursive and roots:
        return f"reaches all of {roots[0]}"
    if name == "dd" and any(word.startswith("of=") and _DISKS.match(word[3:]) for word in arguments):
        return "overwrites a disk"
    if (
        name in ("cp", "mv", "tee", "cat", "shred")
        and any(_DISKS.fullmatch(word) for word in arguments)
        and name != "cat"
    ):
        return "overwrites a disk"
    return ""


def _startup_file(command: SimpleCommand) -> str:
    """The file among those that a copying command writes to which something later runs or trusts."""
    name = program(command.name or "")
    arguments = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    if name in ("cp", "mv", "ln", "install", "rsync", "scp"):
        folder = "".join(arguments[-1:])
        arguments = [folder, *(f"{folder.rstrip('/')}/{source.rsplit('/', 1)[-1]}" for source in arguments[:-1])]
        if name in ("rsync", "scp") and ":" in folder:
            return ""
        arguments = arguments if re.match(r"(~|\$\{?HOME\b|[\"']\$\{?HOME\b|/)", folder) else arguments[:1]
    elif name in ("curl", "wget"):
        options = ["-o", "--output"] if name == "curl" else ["-O", "--output-document"]
        arguments = [word.text for word in option_values(command.words[1:], options)]
    elif name in ("sed", "gsed", "perl"):
        is_in_place = any(re.match(r"-[A-Za-z]*i|--in-place", word.text) for word in command.words[1:])
        arguments = arguments if is_in_place else []
    elif name == "dd":
        arguments = [word[3:] for word in arguments if word.startswith("of=")]
    elif name not in ("tee", "sponge", "truncate"):
        return ""
    return next((word for word in arguments if _STARTUP.search(word)), "")


def _shortened(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "…"
