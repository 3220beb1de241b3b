"""Which method of which era is served by what."""

from __future__ import annotations

from collections.abc import Callable

from dari.mcp.handlers import lifecycle, prompts, resources, subscriptions, tools
from dari.mcp.request import Request

Handler = Callable[[Request], bytes | None]
"""Returns the encoded result, or None when the reply comes later."""

SHARED: dict[str, Handler] = {
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "completion/complete": prompts.complete,
}
HANDSHAKE: dict[str, Handler] = SHARED | {
    "initialize": lifecycle.initialize,
    "ping": lifecycle.ping,
    "logging/setLevel": lifecycle.set_level,
    "resources/subscribe": resources.subscribe,
    "resources/unsubscribe": resources.unsubscribe,
}
STATELESS: dict[str, Handler] = SHARED | {
    "server/discover": lifecycle.discover,
    "subscriptions/listen": subscriptions.listen,
}
BEFORE_INITIALIZE = frozenset({"initialize", "ping"})
