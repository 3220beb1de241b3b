"""What a WebSocket carries, read while it goes by: frames, fragments, permessage-deflate. Nothing is changed or held.

The tap is bounded: a message keeps `flow.SAMPLE_BYTES`, a flow its newest `KEPT_FRAMES` and `KEPT_BYTES`.
"""

from __future__ import annotations

import time
import zlib

from dari.proxy.engine.hooks import RecorderHook
from dari.proxy.flow import SAMPLE_BYTES, Flow, Headers, WebSocketFrame

KEPT_FRAMES = 1000
# Of all messages of a flow: thousands of flows stay in memory, and one that runs is written anew every second.
KEPT_BYTES = 1024 * 1024
_CONTINUATION = 0
_FINAL, _COMPRESSED = 0x80, 0x40
# A compressed message above this is not followed further; its direction is shown compressed from there on.
_INFLATED_BYTES = 4 * 1024 * 1024
# And so much of one direction: a second's worth at most, and what was not used of a few seconds.
_INFLATED_BYTES_PER_S = 16 * 1024 * 1024
_INFLATED_BURST_BYTES = 16 * 1024 * 1024


class WebSocketTap:
    def __init__(self, flow: Flow, response_headers: Headers, recorder: RecorderHook | None) -> None:
        extensions = b",".join(value for name, value in response_headers if name.lower() == b"sec-websocket-extensions")
        deflates = b"permessage-deflate" in extensions.lower()
        client_resets = b"client_no_context_takeover" in extensions
        server_resets = b"server_no_context_takeover" in extensions
        self._flow = flow
        self._recorder = recorder
        self._kept_bytes = 0
        flow.frames = []
        self._sides = {
            True: _Side(_Inflater(client_resets) if deflates else None),
            False: _Side(_Inflater(server_resets) if deflates else None),
        }

    def feed(self, from_client: bool, data: bytes) -> None:
        for opcode, payload, size in self._sides[from_client].feed(data):
            frame = WebSocketFrame(from_client, opcode, payload, size, int(time.time() * 1000))
            frames = self._flow.frames
            assert frames is not None
            frames.append(frame)
            self._kept_bytes += len(payload)
            while len(frames) > KEPT_FRAMES or self._kept_bytes > KEPT_BYTES:
                self._kept_bytes -= len(frames.pop(0).payload)
            if self._recorder is not None:
                self._recorder.frame(self._flow, frame)


class _Inflater:
    """One direction of permessage-deflate (RFC 7692)."""

    def __init__(self, resets: bool) -> None:
        self._resets = resets
        self._stream = zlib.decompressobj(-15)
        self._is_broken = False
        self._left_bytes = float(_INFLATED_BURST_BYTES)
        self._at_s = time.monotonic()

    def inflate(self, data: bytes, room: int) -> tuple[bytes, int]:
        """At most `room` bytes of what `data` holds, and how many there were."""
        if self._is_broken:
            return data[:room], len(data)
        kept, size = b"", 0
        now_s = time.monotonic()
        earned = (now_s - self._at_s) * _INFLATED_BYTES_PER_S
        self._left_bytes, self._at_s = min(self._left_bytes + earned, _INFLATED_BURST_BYTES), now_s
        try:
            while data and size <= _INFLATED_BYTES and self._left_bytes > 0:
                part = self._stream.decompress(data, 64 * 1024)
                size += len(part)
                self._left_bytes -= len(part)
                kept += part[: room - len(kept)]
                data = self._stream.unconsumed_tail
        except zlib.error:
            self._is_broken = True
        if data:
            self._is_broken = True
        return kept, size

    def end_message(self) -> None:
        if self._resets:
            self._stream = zlib.decompressobj(-15)
        elif not self._is_broken:
            self.inflate(b"\x00\x00\xff\xff", 0)


class _Side:
    """Frames of one direction, from bytes in any pieces. Control frames may stand inside a fragmented message."""

    def __init__(self, inflater: _Inflater | None) -> None:
        self._inflater = inflater
        self._buffer = b""
        self._left = 0
        self._mask = b""
        self._offset = 0
        self._first = 0
        self._opcode = 0
        self._is_compressed = False
        self._kept = b""
        self._size = 0
        self._control = b""
        self._is_inside = False

    def feed(self, data: bytes) -> list[tuple[int, bytes, int]]:
        done: list[tuple[int, bytes, int]] = []
        data = self._buffer + data if self._buffer else data
        self._buffer = b""
        position = 0
        while position < len(data):
            if not self._is_inside:
                used = self._read_header(data, position)
                if not used:
                    self._buffer = data[position:]
                    break
                position += used
            part = data[position : position + self._left]
            position += len(part)
            self._left -= len(part)
            self._read_payload(part)
            if self._left:
                break
            self._is_inside = False
            self._end_frame(done)
        return done

    def _read_header(self, data: bytes, start: int) -> int:
        """How many bytes the header takes; 0 while it is incomplete."""
        available = len(data) - start
        if available < 2:
            return 0
        first, second = data[start], data[start + 1]
        extra = {126: 2, 127: 8}.get(second & 0x7F, 0)
        used = 2 + extra + (4 if second & 0x80 else 0)
        if available < used:
            return 0
        self._left = int.from_bytes(data[start + 2 : start + 2 + extra], "big") if extra else second & 0x7F
        self._mask = data[start + 2 + extra : start + used] if second & 0x80 else b""
        self._offset = 0
        self._first = first
        opcode = first & 0x0F
        if opcode & 0x8:
            self._control = b""
        elif opcode != _CONTINUATION:
            self._opcode = opcode
            self._is_compressed = bool(first & _COMPRESSED) and self._inflater is not None
            self._kept, self._size = b"", 0
        self._is_inside = True
        return used

    def _read_payload(self, part: bytes) -> None:
        if self._first & 0x8:
            self._control += self._unmask(part)[: 125 - len(self._control)]
        elif self._is_compressed and self._inflater is not None:
            kept, size = self._inflater.inflate(self._unmask(part), SAMPLE_BYTES - len(self._kept))
            self._kept += kept
            self._size += size
        else:
            room = SAMPLE_BYTES - len(self._kept)
            if room > 0:
                self._kept += self._unmask(part[:room])
            self._size += len(part)
        self._offset += len(part)

    def _unmask(self, part: bytes) -> bytes:
        if not self._mask or not part:
            return part
        shift = self._offset % 4
        key = (self._mask[shift:] + self._mask[:shift]) * (len(part) // 4 + 1)
        masked = int.from_bytes(part, "big") ^ int.from_bytes(key[: len(part)], "big")
        return masked.to_bytes(len(part), "big")

    def _end_frame(self, done: list[tuple[int, bytes, int]]) -> None:
        if self._first & 0x8:
            done.append((self._first & 0x0F, self._control, len(self._control)))
        elif self._first & _FINAL:
            if self._is_compressed and self._inflater is not None:
                self._inflater.end_message()
            done.append((self._opcode, self._kept, self._size))
            self._kept, self._size = b"", 0
