"""What another server offers through ours: replaced as a whole when it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dari.core.prompt import Prompt
from dari.core.resource import Resource, ResourceTemplate
from dari.core.tool import Tool


@dataclass(frozen=True, slots=True)
class Offer:
    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    """What each server of the tools is for, by its name; tools are found by it."""


def is_same_listing(
    before: Sequence[Tool | Prompt | Resource | ResourceTemplate],
    after: Sequence[Tool | Prompt | Resource | ResourceTemplate],
) -> bool:
    """Whether a client that listed one would see no difference in the other."""
    return len(before) == len(after) and all(
        old is new or old.listing() == new.listing() for old, new in zip(before, after, strict=True)
    )
