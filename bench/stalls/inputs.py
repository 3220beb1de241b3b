"""Every hostile input by name, in the order of the table."""

from collections.abc import Awaitable, Callable
from functools import partial

from bench.stalls import bridge_inputs, proxy_inputs, server_inputs
from bench.stalls.heartbeat import Stall

Input = Callable[[], Awaitable[Stall]]

INPUTS: dict[str, tuple[str, Input]] = {
    "schema": ("a tool's schema of 8^40 steps, called", bridge_inputs.a_schema_of_eight_to_the_fortieth),
    "tools": ("a million tools of a server behind the bridge", bridge_inputs.a_million_tools),
    "client-tools": ("a million tools, our client alone", server_inputs.a_million_tools),
    "list": ("2,000 tools with 30 arguments each", bridge_inputs.a_list_at_its_limit),
    "index": ("`find_tools` over 100 texts of 20,000 words", bridge_inputs.find_tools_on_long_texts),
    "pin-diff": ("the diff of two texts of 40,000 lines", bridge_inputs.a_diff_of_long_texts),
    "policy": ("`Policy.judge` of the hardest texts", bridge_inputs.the_hardest_commands_to_judge),
    "noise": ("a million lines of noise from a server", server_inputs.noise_of_a_server),
    "notices": ("200,000 log messages from a server", server_inputs.notifications_of_a_server),
    "post-chunks": ("300,000 one-byte chunks to `/mcp`", server_inputs.chunked_post),
    "app-chunks": ("300,000 one-byte chunks to another path", server_inputs.chunked_post_elsewhere),
    "pipelined": ("50,000 pipelined requests to `/mcp`", server_inputs.pipelined_posts),
    "deep": ("arguments nested 200,000 deep", server_inputs.deep_arguments),
    "values": ("arguments with 2,000,000 values", server_inputs.many_values),
    "batch": ("a batch of 200,000 requests", server_inputs.batch),
    "lines": ("500,000 lines of noise on the Unix socket", server_inputs.lines_of_noise),
    "blank": ("500,000 blank lines on the Unix socket", server_inputs.blank_lines),
    "line": ("a line of 60 MB without an end", server_inputs.a_line_without_end),
    "answer-chunks": ("300,000 one-byte chunks from a server", server_inputs.chunked_answer),
    "event-chunks": ("300,000 one-byte chunks of an event stream", server_inputs.chunked_events),
    "events": ("500,000 events of noise", server_inputs.events_of_noise),
    "event-lines": ("one event of 500,000 lines", server_inputs.lines_of_one_event),
    "event": ("an event of 60 MB without an end", server_inputs.an_event_without_end),
    "upload": ("300,000 one-byte chunks up through the proxy", proxy_inputs.chunked_upload),
    "download": ("300,000 one-byte chunks down through the proxy", proxy_inputs.chunked_download),
    "interim": ("300,000 interim responses of an origin", proxy_inputs.informational_responses),
    "proxy-pipelined": ("50,000 pipelined requests to the proxy", proxy_inputs.pipelined_requests),
    "ws-frames": ("300,000 WebSocket fragments", proxy_inputs.websocket_frames),
    "ws-bombs": ("500 WebSocket messages of 4 MiB in 4 KiB", proxy_inputs.websocket_bombs),
    **{
        f"h2-{name.replace(' ', '-').lower()}": (f"HTTP/2: a flood of {name}", partial(proxy_inputs.h2_flood, name))
        for name in proxy_inputs.FLOODS
    },
    **{
        f"bomb-{coding.replace(', ', '-')}": (
            f"4 views, a search and a diff of a {coding} bomb",
            partial(proxy_inputs.four_views, coding),
        )
        for coding in ("zstd", "gzip", "br", "deflate", "gzip, gzip")
    },
}
