"""Options of a command line, as getopt reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dari.terminal.policy.ast import Word


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """`given`: the option words; `plain`: the others, without the values of options."""

    given: tuple[Word, ...]
    plain: tuple[Word, ...]


def split_options(arguments: Sequence[Word], valued: str, stop_at_plain: bool = False) -> CommandOptions:
    """Tell options from plain words; `valued` names the options that take the next word."""
    takes_next = frozenset(valued.split())
    given: list[Word] = []
    plain: list[Word] = []
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word.text == "--":
            plain += arguments[index + 1 :]
            break
        if (
            word.text[:1] in ("-", "+")
            and len(word.text) > 1
            and not (word.text[0] == "+" and word.text not in takes_next)
        ):
            given.append(word)
            if (
                word.text in takes_next
                or _is_long_prefix(word.text, takes_next)
                or (
                    word.text[:2] != "--"
                    and len(word.text) > 2
                    and "-" + word.text[-1] in takes_next
                    and "-" + word.text[1] not in takes_next
                )
            ):
                index += 1
        elif stop_at_plain:
            plain += arguments[index:]
            break
        else:
            plain.append(word)
        index += 1
    return CommandOptions(tuple(given), tuple(plain))


def has_option(arguments: Iterable[Word], option: str) -> bool:
    """Whether `option` is given: alone, with `=value`, with the value attached, or inside a cluster of letters."""
    for word in arguments:
        text = word.text
        if text == "--":
            return False
        if text == option or text.startswith(option + "="):
            return True
        if len(option) == 2 and option[0] == "-" and option != "--" and text[:1] == "-" and text[:2] != "--":
            letters = text[1:]
            if option[1] in letters and (letters.isalpha() or letters.startswith(option[1])):
                return True
        elif (
            option.startswith("--")
            and len(text) > 4
            and text.startswith("--")
            and option.startswith(text.split("=")[0])
        ):
            return True  # GNU programs take any prefix of a long option
    return False


def option_values(arguments: Sequence[Word], options: Sequence[str]) -> list[Word]:
    """The values of these options, however they are written: apart, attached, after `=`, in a cluster such as `-qc`."""
    values: list[Word] = []
    for index, word in enumerate(arguments):
        if word.text == "--":
            break
        for option in options:
            if word.text == option:
                values += arguments[index + 1 : index + 2]
            elif option.startswith("--") and word.text.startswith("--"):
                name, equals, value = word.text.partition("=")
                if len(name) > 4 and option.startswith(name):
                    values += [Word(value, word.is_known)] if equals else arguments[index + 1 : index + 2]
            elif len(option) == 2 and word.text[:1] == "-" and word.text[:2] != "--":
                values += _in_cluster(word, option[1], arguments[index + 1 : index + 2])
    return values


def _in_cluster(word: Word, letter: str, following: Sequence[Word]) -> list[Word]:
    """The value of `-c` in `-qc TEXT`, `-qcTEXT` and `-cTEXT`."""
    at = word.text.find(letter, 1)
    before = word.text[1:at]
    if at < 0 or not (before.isalnum() or not before):
        return []
    value = word.text[at + 1 :]
    return [Word(value, word.is_known)] if value else list(following)


def _is_long_prefix(text: str, takes_next: frozenset[str]) -> bool:
    """GNU programs take any prefix of a long option."""
    return len(text) > 4 and text.startswith("--") and any(each.startswith(text) for each in takes_next)
