"""How sure a reference is: which definition it means, by its file, its receiver, its imports and what is around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from dari.syntax.occurrences import Occurrence

Certainty = Literal["sure", "likely", "possible"]
_SEPARATORS = re.compile(r"::|->|[#/:]")
_SELVES = frozenset(("self", "this", "cls", "Self", "super()", "super", "@", "static", "parent"))
_IMPLICIT_SELF = frozenset(("java", "csharp", "kotlin", "swift", "scala", "cpp", "ruby", "php", "dart"))
_PACKAGE_FILES = frozenset(("__init__", "index", "mod", "lib", "main"))


class ReferenceSite(Struct, frozen=True):
    """An occurrence and the file that it is in."""

    path: str
    language: str
    at: Occurrence

    @property
    def owner(self) -> str:
        """What a definition is inside of: `Class` of `Class.method`."""
        return dotted(self.at.symbol).rpartition(".")[0]


def dotted(name: str) -> str:
    """`A::b`, `A#b` and `A->b` as `A.b`."""
    return _SEPARATORS.sub(".", name).strip(".")


def module_of(path: str) -> str:
    """`src/shop/cart.py` as `src.shop.cart`, a package's own file as the package."""
    stem = path.rpartition(".")[0] if "." in path.rpartition("/")[2] else path
    parts = [part for part in stem.split("/") if part not in ("", ".", "..")]
    if len(parts) > 1 and parts[-1] in _PACKAGE_FILES:
        parts.pop()
    return ".".join(parts)


def matches(definition: ReferenceSite, wanted: str) -> bool:
    """Whether it is `name`, `Class.name` or `module.name`, as far as the caller qualified it."""
    full = f".{module_of(definition.path)}.{dotted(definition.at.symbol)}"
    return full.endswith(f".{dotted(wanted)}")


def judge(
    place: ReferenceSite,
    definitions: Sequence[ReferenceSite],
    others: Sequence[ReferenceSite],
    imported: Certainty | None,
) -> Certainty | None:
    """Whether it means one of `definitions`; None when it means another thing.

    `others` are definitions that the caller's qualified name leaves out; `imported`: how sure the file's import is.
    """
    at = place.at
    if at.is_local and definitions:
        return None
    if at.kind == "module":
        return None if definitions else "possible"
    if at.kind == "argument":
        return "possible"
    if at.is_member:
        return _judge_member(place, definitions, others)
    if at.kind == "import":
        return "sure" if _names_module(at.text, definitions) else _by_number(definitions, others)
    here = [one for one in definitions if one.path == place.path and _is_visible(one, place)]
    if here:
        return "sure"
    if any(one.path == place.path and _is_visible(one, place) for one in others):
        return None
    free = [one for one in definitions if not _is_member(one)]
    if not free:
        return "possible"
    if imported is not None:
        return imported
    same_folder = any(_folder(one.path) == _folder(place.path) for one in free)
    return _by_number(free, others) if same_folder or len(free) == 1 else "possible"


def _judge_member(
    place: ReferenceSite, definitions: Sequence[ReferenceSite], others: Sequence[ReferenceSite]
) -> Certainty | None:
    receiver = dotted(place.at.receiver)
    last = receiver.rpartition(".")[2]
    if place.at.receiver in _SELVES:
        around = f"{dotted(place.at.symbol)}."
        if any(one.path == place.path and one.owner and around.startswith(f"{one.owner}.") for one in definitions):
            return "sure"
        if any(one.path == place.path and one.owner and around.startswith(f"{one.owner}.") for one in others):
            return None
        return "possible"
    if any(last == _container(one) for one in definitions):
        return "sure"
    if any(last == _container(one) for one in others):
        return None
    # `cart.add()` with one `Cart.add`: a variable is often called as its type.
    if any(last and last.lower().strip("_") == one.owner.rpartition(".")[2].lower() for one in definitions):
        return "likely"
    members = [one for one in definitions if _is_member(one)]
    return _by_number(members, others) if len(members) == 1 else "possible"


def _by_number(definitions: Sequence[ReferenceSite], others: Sequence[ReferenceSite]) -> Certainty:
    return "likely" if len(definitions) == 1 and not others else "possible"


def _is_visible(definition: ReferenceSite, place: ReferenceSite) -> bool:
    """From the place without a receiver: it is at the top, in a scope around it, or in a class that needs no `self`."""
    owner = definition.owner
    if not owner:
        return True
    inside = f"{dotted(place.at.symbol)}.".startswith(f"{owner}.")
    if not inside:
        return False
    return not _is_member(definition) or definition.language in _IMPLICIT_SELF or dotted(place.at.symbol) == owner


def _is_member(definition: ReferenceSite) -> bool:
    return definition.at.kind in ("method", "field")


def _container(definition: ReferenceSite) -> str:
    """What stands before the dot when it is named from elsewhere: its class, or its module."""
    return (definition.owner if _is_member(definition) else module_of(definition.path)).rpartition(".")[2] or "?"


def _names_module(text: str, definitions: Sequence[ReferenceSite]) -> bool:
    words = set(re.findall(r"[\w-]+", text))
    return any(module_of(one.path).rpartition(".")[2] in words for one in definitions)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
