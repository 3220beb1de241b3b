"""Peer: the least an ASGI application can do about an echo; no MCP, no token, no session, no checks."""

from collections.abc import Awaitable, Callable

import msgspec
import uvicorn

from bench.servers.arguments import Arguments, parse

Message = dict[str, object]
decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    body = b""
    more = True
    while more:
        part = await receive()
        body += part.get("body", b"")  # type: ignore[operator]
        more = bool(part.get("more_body"))
    request = decode(body)
    content = [{"type": "text", "text": request["params"]["arguments"]["text"]}]
    reply = encode({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


def main(given: Arguments) -> None:
    if given.transport != "http":
        raise SystemExit("this peer speaks HTTP only")
    uvicorn.run(
        app,
        port=given.http_port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main(parse())
