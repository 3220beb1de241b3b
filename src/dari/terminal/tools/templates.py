"""`crux://pane/{id}/scrollback` and `crux://pane/{id}/state`, read from the service, wherever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dari.core.context import Context
from dari.core.registry import Registry
from dari.core.resource import Completer, ResourceTemplate

if TYPE_CHECKING:
    from dari.terminal.service import TerminalService

SCROLLBACK, STATE = "crux://pane/{id}/scrollback", "crux://pane/{id}/state"


class PaneTexts:
    """What the two resources of a pane hold. The service is asked for when somebody reads, not before."""

    def __init__(self, terminal: Callable[[], TerminalService]) -> None:
        self._terminal = terminal

    def add_templates(self, registry: Registry) -> None:
        complete: dict[str, Completer] = {"id": self._ids}
        shows = "What a pane shows and has shown"
        registry.add_template(
            ResourceTemplate(
                SCROLLBACK, "scrollback", self.scrollback, shows, "text/plain", output="as_is", completers=complete
            )
        )
        registry.add_template(
            ResourceTemplate(
                STATE, "state", self.state, "Size, cursor, program", "application/json", completers=complete
            )
        )

    async def scrollback(self, context: Context, values: dict[str, str]) -> str:
        from dari.terminal.tools.presentation import MOST_TOKENS, shown

        found = await self._terminal().reading.get_raw_text(values["id"], True)
        return shown(found.text, MOST_TOKENS).text

    async def state(self, context: Context, values: dict[str, str]) -> str:
        import msgspec

        from dari.text.sanitize import sanitize_value_for_terminal

        found = await self._terminal().reading.get_pane_state(values["id"])
        return msgspec.json.encode(sanitize_value_for_terminal(msgspec.to_builtins(found))).decode()

    async def _ids(self, typed: str, known: dict[str, str]) -> list[str]:
        panes = (await self._terminal().panes.list_panes()).panes
        return [pane.id for pane in panes if pane.id.startswith(typed)]
