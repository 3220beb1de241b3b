"""Texts that are hard to judge, each as long as a text may be, and the longest time that one of them takes."""

from __future__ import annotations

import time

from dari.terminal.policy.config import Security
from dari.terminal.policy.policy import Policy

WORDS = 3_000
CHARS = 60_000


def hard_texts(words: int = WORDS, chars: int = CHARS) -> dict[str, str]:
    """Name → text; each grows with the two numbers."""
    return {
        "words of a runner": "docker run " + "x " * words,
        "runners in a runner": "npx env " * (words // 2),
        "shells in a runner": "docker run " + "sh " * words,
        "words of an unknown program": "foo " + "x " * words,
        "shells in an unknown program": "foo " + "sh " * words,
        "texts in an unknown program": "foo " + "'a b' " * words,
        "dangerous words": "foo " + "rm " * words,
        "commands in a text": "foo '" + "a;" * (chars // 2) + "'",
        "wrappers": "env " * words + "ls",
        "find with many commands": "find . " + "-exec ls ; " * words,
        "redirections": "ls " + ">x " * words,
        "here-documents": "cat " + "<<E " * (words // 2) + "\n" + "E\n" * (words // 2),
        "directories": "cd a; " * (chars // 6),
        "functions": "f(){ f; };" * words,
        "nested substitutions": "$(" * (chars // 3) + ")" * (chars // 3),
        "nested substitutions in quotes": '"$(' * (chars // 3),
        "nested arithmetic": "$((" * (chars // 3),
        "nested groups": "{ " * (chars // 2),
        "parentheses": "((" * (chars // 2),
        "open braces": "echo {" + "," * chars,
        "many braces": "echo " + "{1..9}" * (chars // 6),
        "open brackets": "echo " + "[" * chars,
        "stars": "ls " + "*" * chars,
        "one long word": "echo " + "x" * chars,
        "files of ours": "echo " + "crux/" * (chars // 5),
        "hooks": "cp a '" + ".git/hooks/" * (chars // 12) + "\n x'",
        "awk that prints": "awk '" + "print " * (chars // 6) + "'",
        "values that are followed": ";".join(f"a{i}=a{i + 1}" for i in range(words)) + ";((a0))",
        "subscripts": "echo " + "${a[x]}" * (chars // 7),
        "subscripts in a value": "x='" + "[" * chars + "'",
        "strings for let": "let " + "'x[$(ls)]' " * words,
        "strings for make": "make " + "'A=$(shell ls)' " * words,
        "comparisons": "[[ " + "a -eq b && " * words + "a ]]",
        "quotes in arithmetic": "((" + "'" * chars + "))",
        "history": "echo " + "!a" * (chars // 2),
    }


def longest_judge_s() -> tuple[float, str]:
    """The longest time that a verdict took, and the name of the text."""
    policies = (Policy(Security()), Policy(Security(allowed_commands=("ls",), allowed_directories=("/srv",))))
    longest = (0.0, "")
    for name, text in hard_texts().items():
        for policy in policies:
            began = time.perf_counter()
            policy.judge(text, "/srv")
            longest = max(longest, (time.perf_counter() - began, name))
    return longest
