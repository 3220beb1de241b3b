"""hyper-h2, with the three things a proxy must do otherwise than it does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import AllowedStreamIDs, H2Connection
from h2.events import ConnectionTerminated, Event
from h2.settings import SettingCodes, Settings
from h2.stream import H2Stream
from hyperframe.frame import Frame, GoAwayFrame

from dari.proxy.engine.heads import HEAD_BYTES

if TYPE_CHECKING:
    from hpack.struct import Header

MAX_STREAMS = 128
"""Of one connection at a time; those above are refused one by one."""
WINDOW_BYTES = 256 * 1024
"""What a peer may send ahead on one stream, and so all that a stalled one can cost."""
# Never the limit: it is given back on arrival, so that a stalled stream does not hold up the others.
CONNECTION_BYTES = 16 * 1024 * 1024


class Wire(H2Connection):
    """Headers are validated by `fields`, where a bad request ends its own stream and is recorded."""

    def __init__(self, client_side: bool) -> None:
        config = H2Configuration(
            client_side, header_encoding=None, validate_inbound_headers=False, validate_outbound_headers=False
        )
        super().__init__(config)
        values = {
            SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: HEAD_BYTES,
            SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
        }
        if client_side:
            values[SettingCodes.ENABLE_PUSH] = 0
        self.local_settings = Settings(client=client_side, initial_values=values)
        self.decoder.max_header_list_size = HEAD_BYTES

    def open(self) -> None:
        self.initiate_connection()
        self.increment_flow_control_window(CONNECTION_BYTES)

    @property
    def open_inbound_streams(self) -> int:
        # h2 ends the connection of a client that opens one too many, which it may do before it knows our limit.
        return min(super().open_inbound_streams, MAX_STREAMS - 1)

    def _begin_new_stream(self, stream_id: int, allowed_ids: AllowedStreamIDs) -> H2Stream:
        stream = super()._begin_new_stream(stream_id, allowed_ids)
        # h2 ends the connection for one body of the wrong length, and takes 304 with a Content-Length for that.
        stream._initialize_content_length = _not_counted  # type: ignore[method-assign]
        return stream

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        # h2 closes the connection here. RFC 9113, 6.8: the streams up to the last one named go on to their ends.
        event = ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        event.additional_data = frame.additional_data or None
        return [], [event]


def _not_counted(headers: Iterable[Header]) -> None:
    return None
