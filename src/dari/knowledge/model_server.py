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

if TYPE_CHECKING:
    from http.client import HTTPResponse

MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
_MAX_REASON_CHARS = 300


class ModelServer(Struct, frozen=True):
    """An OpenAI-compatible or Ollama server. `endpoint` is the base, such as `http://127.0.0.1:11434/v1`."""

    endpoint: str
    api_key_env: str = ""
    timeout_s: float = 120.0

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply. Raises ModelUnreachable, ModelNotInstalled, TimedOut or ConfigInvalid."""
        with self._response(path, body) as response:
            data = response.read(MAX_REPLY_BYTES + 1)
        if len(data) > MAX_REPLY_BYTES:
            raise ModelUnreachable(f"{self.endpoint} sent more than {MAX_REPLY_BYTES} bytes", "check the endpoint")
        return _decode(data, self.endpoint)

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Any]:
        """The `data:` events of a reply, decoded, until `[DONE]` or the end."""
        with self._response(path, body) as response:
            while line := response.readline(MAX_LINE_BYTES):
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                yield _decode(data, self.endpoint)

    def get(self, path: str) -> Any:
        with self._response(path, None) as response:
            return _decode(response.read(MAX_REPLY_BYTES), self.endpoint)

    @contextmanager
    def _response(self, path: str, body: Mapping[str, Any] | None) -> Iterator[HTTPResponse]:
        import http.client
        import urllib.error
        import urllib.request

        if not self.endpoint.startswith(("http://", "https://")):
            raise ConfigInvalid(
                f"endpoint must begin with http:// or https://, got {self.endpoint!r}",
                "such as http://127.0.0.1:11434/v1",
            )
        url = self.endpoint.rstrip("/") + path
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        request = urllib.request.Request(url, data, {"content-type": "application/json", **self._authorization()})
        try:
            with urllib.request.build_opener(_no_redirects()).open(request, timeout=self.timeout_s) as response:
                yield response
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None
        except TimeoutError:
            raise self._late() from None
        except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._late() from None
            raise ModelUnreachable(
                f"{self.endpoint} does not answer: {reason}", "start the model's server, or correct the endpoint"
            ) from None

    def _authorization(self) -> dict[str, str]:
        if not self.api_key_env:
            return {}
        key = os.environ.get(self.api_key_env, "")
        if not key:
            raise ConfigInvalid(
                f"environment variable {self.api_key_env} must hold the key of {self.endpoint}, it is not set",
                f"export {self.api_key_env}=…",
            )
        return {"authorization": f"Bearer {key}"}

    def _late(self) -> TimedOut:
        return TimedOut(
            f"{self.endpoint} took longer than {self.timeout_s:g} s", "raise timeout_s, or use a smaller model"
        )

    def _refusal(self, error: Any) -> ModelUnreachable | ModelNotInstalled | ConfigInvalid:
        said = error.read(4096).decode(errors="replace")
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


def _no_redirects() -> Any:
    """A redirect would carry the key and the documents to a server that nobody configured."""
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return NoRedirects


def _decode(data: bytes, endpoint: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        shown = data[:80].decode(errors="replace")
        raise ModelUnreachable(f"{endpoint} sent something that is not JSON: {shown!r}", "check the endpoint") from None


def _reason(said: str) -> str:
    """The message inside an error reply of either style, or the reply itself."""
    try:
        error = json.loads(said).get("error", said)
    except (ValueError, AttributeError):
        return said
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)
