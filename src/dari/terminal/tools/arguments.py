"""Arguments that several tools share: their types, with what a model reads about them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dari.terminal.limits import MAX_WAIT_MS

PaneId = Annotated[str, Meta(description="id or name, such as 2; left out: the focused pane")]
MaxTokens = Annotated[int, Meta(description="most tokens of text to return")]
CommandId = Annotated[str, Meta(description='command_id of crux_execute_command, such as "2:cmd-7"')]
Regex = Annotated[bool, Meta(description="false: the pattern is plain text")]
WaitMs = Annotated[int, Meta(description=f"milliseconds to wait, 0 to {MAX_WAIT_MS}; 0 only looks")]
FirstLine = Annotated[
    int, Meta(description="first line of the scrollback to read, 0 for the oldest; left out: the last command")
]
LineCount = Annotated[int, Meta(description="how many lines; 0 for all, alone for the last ones")]
