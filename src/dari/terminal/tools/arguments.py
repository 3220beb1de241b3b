"""Arguments that several tools share: their types, with what a model reads about them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

PaneId = Annotated[str, Meta(description="id or name of a pane, such as 2 or server; left out: the focused one")]
MaxTokens = Annotated[int, Meta(description="most tokens of text; the middle of a longer one is left out")]
CommandId = Annotated[str, Meta(description='command_id of crux_execute_command, such as "2:cmd-7"')]
Regex = Annotated[bool, Meta(description="false: the pattern is plain text")]
