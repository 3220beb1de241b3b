"""Requests to a model's server: JSON in, JSON or a stream of events out, failures as errors of kebab.

The server is one that the person configured (Ollama, llama.cpp, vLLM, LM Studio, a company's gateway), so the proxy
and CA settings of the environment hold, as for every Python program. A key is read from the environment variable that
the configuration names, sent in the header and shown nowhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dari.errors import TimedOut
from dari.knowledge.errors import ConfigInvalid, ModelNotInstalled, ModelUnreachable
from dari.knowledge.request_deadline import RequestDeadline

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import Request

MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
STREAM_TIMES = 4
"""A stream may take so many times `timeout_s` as a whole: a model on a processor writes for minutes."""
_MAX_REASON_CHARS = 300


class ModelServer(Struct, frozen=True):
    """An OpenAI-compatible or Ollama server. `endpoint` is the base, such as `http://127.0.0.1:11434/v1`.

    `timeout_s` is for a whole reply, and for the silence between two pieces of a stream.
    """

    endpoint: str
    api_key_env: str = ""
    timeout_s: float = 120.0

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply. Raises ModelUnreachable, ModelNotInstalled, TimedOut or ConfigInvalid."""
        return self._read(path, body)

    def get(self, path: str) -> Any:
        return self._read(path, None)

    def stream(self, path: str, body: Mapping[str, Any], max_bytes: int = MAX_REPLY_BYTES) -> Iterator[Any]:
        """The `data:` events of a reply, decoded, until `[DONE]` or the end; heartbeats count as bytes too."""
        received = 0
        with self._response(path, body, STREAM_TIMES * self.timeout_s) as response:
            while line := response.readline(MAX_LINE_BYTES):
                received += len(line)
                if received > max_bytes:
                    raise self._too_much(max_bytes)
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                yield _decode(data, self.endpoint)

    def _read(self, path: str, body: Mapping[str, Any] | None) -> Any:
        with self._response(path, body, self.timeout_s) as response:
            data = response.read(MAX_REPLY_BYTES + 1)
        if len(data) > MAX_REPLY_BYTES:
            raise self._too_much(MAX_REPLY_BYTES)
        return _decode(data, self.endpoint)

    @contextmanager
    def _response(self, path: str, body: Mapping[str, Any] | None, within_s: float) -> Iterator[HTTPResponse]:
        import http.client
        import urllib.error

        request = self._request(path, body)
        with RequestDeadline(within_s) as deadline:
            try:
                with deadline.opener().open(request, timeout=self.timeout_s) as response:
                    yield response
            except urllib.error.HTTPError as error:
                raise self._refusal(error) from None
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                reason = getattr(error, "reason", error)
                if deadline.has_passed or isinstance(reason, TimeoutError):
                    raise self._late(within_s) from None
                raise ModelUnreachable(
                    f"{self.endpoint} does not answer: {reason or type(error).__name__}",
                    "start the model's server, or correct the endpoint",
                ) from None
            if deadline.has_passed:  # the end of the data was ours
                raise self._late(within_s)

    def _request(self, path: str, body: Mapping[str, Any] | None) -> Request:
        import urllib.parse
        import urllib.request

        try:
            parts = urllib.parse.urlsplit(self.endpoint)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            raise ConfigInvalid(
                f"endpoint must begin with http:// or https:// and name a server, got {self.endpoint!r}",
                "such as http://127.0.0.1:11434/v1",
            )
        url = self.endpoint.rstrip("/") + path
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return urllib.request.Request(url, data, {"content-type": "application/json", **self._authorization()})

    def _authorization(self) -> dict[str, str]:
        if not self.api_key_env:
            return {}
        key = os.environ.get(self.api_key_env, "")
        if not key:
            raise ConfigInvalid(
                f"environment variable {self.api_key_env} must hold the key of {self.endpoint}, it is not set",
                f"export {self.api_key_env}=…",
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid(
                f"environment variable {self.api_key_env} must hold a key of printable ASCII characters;"
                f" character {_first_strange(key)} of {len(key)} is not one",
                "a file with Windows line ends adds one: read it without them",
            )
        return {"authorization": f"Bearer {key}"}

    def _late(self, within_s: float) -> TimedOut:
        return TimedOut(f"{self.endpoint} took longer than {within_s:g} s", "raise timeout_s, or use a smaller model")

    def _too_much(self, max_bytes: int) -> ModelUnreachable:
        return ModelUnreachable(f"{self.endpoint} sent more than {max_bytes} bytes", "check the endpoint and the model")

    def _refusal(self, error: Any) -> ModelUnreachable | ModelNotInstalled | ConfigInvalid:
        import http.client

        try:
            said = error.read(4096).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            said = ""
        reason = _reason(said)[:_MAX_REASON_CHARS]
        if error.code in (401, 403):
            return ConfigInvalid(
                f"{self.endpoint} refused the key (HTTP {error.code}): {reason}",
                "set api_key_env to the right variable",
            )
        if error.code == 404 and "model" in said.lower():
            return ModelNotInstalled(f"{self.endpoint}: {reason}", "pull the model on that server, or name another one")
        return ModelUnreachable(
            f"{self.endpoint} answered HTTP {error.code}: {reason}",
            "check the endpoint and the model",
            status=error.code,
        )


def _decode(data: bytes, endpoint: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        shown = data[:80].decode(errors="replace")
        raise ModelUnreachable(f"{endpoint} sent something that is not JSON: {shown!r}", "check the endpoint") from None


def _reason(said: str) -> str:
    """The message inside an error reply of either style, or the reply itself."""
    try:
        error = json.loads(said).get("error", said)
    except (ValueError, RecursionError, AttributeError):
        return said
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _first_strange(key: str) -> int:
    """The place of the first character that no key has, from 1."""
    return next(place for place, char in enumerate(key, start=1) if not (char.isascii() and char.isprintable()))
