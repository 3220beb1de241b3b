"""A file of flows for `mitmweb -r`, written with mitmproxy's own code: FILE COUNT."""

import sys

from mitmproxy import http, io
from mitmproxy.connection import Client, Server
from mitmproxy.http import HTTPFlow

KINDS = ("users", "orders", "items", "search", "sessions", "images", "metrics", "events")
STATUSES = (200, 200, 200, 201, 304, 404, 500)
BODY = b'{"items": [' + b", ".join(b'{"id": %d, "name": "item %d"}' % (n, n) for n in range(20)) + b"]}"

with open(sys.argv[1], "wb") as file:
    writer = io.FlowWriter(file)
    for number in range(int(sys.argv[2])):
        flow = HTTPFlow(
            Client(peername=("127.0.0.1", 50000), sockname=("127.0.0.1", 8080), timestamp_start=1.0),
            Server(address=("127.0.0.1", 9000)),
        )
        url = f"http://127.0.0.1:9000/api/{KINDS[number % len(KINDS)]}/{number}?page={number % 50}"
        flow.request = http.Request.make("GET", url, headers={"Accept": "*/*"})
        status = STATUSES[number % len(STATUSES)]
        flow.response = http.Response.make(status, BODY, {"Content-Type": "application/json"})
        flow.request.timestamp_start = flow.request.timestamp_end = 1_700_000_000.0 + number / 200
        flow.response.timestamp_start = flow.response.timestamp_end = flow.request.timestamp_start + 0.01
        writer.add(flow)
