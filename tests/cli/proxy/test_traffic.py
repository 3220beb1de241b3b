"""`dari proxy traffic`: what was recorded, for people and for scripts."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dari.core.hub_client import hub_approvals
from dari.daemon.errors import ScopeRequired
from dari.proxy.daemon import crabd_client as daemon_client
from tests.cli.proxy.test_rules import Client
from tests.support.crux_command import end_hub
from tests.support.origins.origin import Origin, answering
from tests.support.proxy_command import JSON_BODY, Shell, dari, ran, serving

PNG = bytes(range(256)) * 40_000
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def client(shell: Shell) -> Client:
    return Client(shell.started())


def test_the_list_is_a_log_with_the_newest_last(shell: Shell, client: Client, site: Origin) -> None:
    assert shell("traffic").out == "Nothing recorded that fits\n"
    for path in ("/a", "/b", "/c"):
        client.get(site.url(path))
    lines = shell("traffic").out.splitlines()
    assert [line.split()[-1] for line in lines] == [site.url(path) for path in ("/a", "/b", "/c")]
    assert lines[0].split()[1:4] == ["1", "GET", "200"]
    assert [flow["id"] for flow in shell.json("traffic", "-n", "2")["flows"]] == [2, 3]


FILTERS: tuple[tuple[tuple[str, ...], list[int]], ...] = (
    (("--method", "POST"), [2]),
    (("--status", "4xx"), [3]),
    (("--errors",), [3]),
    (("--url", "/B"), [2]),
    (("--url-regex", "/[ab]$"), [1, 2]),
    (("--header", "x-nothing"), []),
    (("--body", "ada"), [1, 2]),
    (("--mime", "json"), [1, 2]),
    (("--host", "127.0.0.1"), [1, 2, 3]),
    (("--host", "example.com"), []),
    (("--since", "1h"), [1, 2, 3]),
    (("--since", "2999-01-01"), []),
    (("--event", "upstream", "--method", "GET"), [1, 3]),
    (("--query", "method:POST or status:4xx"), [2, 3]),
    (("--query=-method:POST", "--status", "2xx"), [1]),
    (("--query", "not method:POST"), [1, 3]),
)


def test_filters_choose(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/a"))
    client.get(site.url("/b"), "POST")
    with serving(answering(NOT_FOUND)) as empty:
        client.get(empty.url("/c"))
    for options, ids in FILTERS:
        assert [flow["id"] for flow in shell.json("traffic", *options)["flows"]] == ids, options


def test_show_hides_secrets_unless_they_are_revealed(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/user?access_token=s3cr3t-in-the-url"))
    said = shell("traffic", "show", "1").out
    assert "status  200" in said and "Content-Type: application/json" in said
    assert '"name": "Ada"' in said and "s3cr3t" not in said
    assert "s3cr3t-t0k3n-value" in shell("traffic", "show", "1", "--reveal").out
    assert shell.json("traffic", "show", "#1")["flow"]["status"] == 200


def test_control_characters_of_the_network_never_reach_the_terminal(shell: Shell, client: Client) -> None:
    body = b"\x1b]0;owned\x07"
    answer = b"HTTP/1.1 200 OK\r\nX-Evil: \x9b31m\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n" + body
    with serving(answering(answer)) as evil:
        client.get(evil.url("/"))
        for words in (("show", "1"), ("show", "1", "--reveal"), ("replay", "1")):
            said = shell("traffic", *words).out
            assert "owned" in said
            assert "\x1b" not in said and "\x9b" not in said


def test_a_body_is_text_for_people_and_exact_in_a_file(shell: Shell, client: Client, site: Origin, home: Path) -> None:
    client.get(site.url("/"))
    assert json.loads(shell("traffic", "body", "1").out) == {"name": "Ada", "token": "<redacted>"}
    assert shell("traffic", "body", "1", "--reveal").out == JSON_BODY.decode()
    shell("traffic", "body", "1", "-o", str(home / "body"))
    assert (home / "body").read_bytes() == JSON_BODY
    assert shell.json("traffic", "body", "1")["kind"] == "json"
    assert "no request body" in shell("traffic", "body", "1", "--request", code=1).err
    assert "no flow has the id 9" in shell("traffic", "body", "9", "-o", str(home / "x"), code=1).err


def test_a_large_compressed_body_comes_out_whole(shell: Shell, client: Client, home: Path) -> None:
    packed = gzip.compress(PNG)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    with serving(answering(head % len(packed) + packed)) as pictures:
        client.get(pictures.url("/p.png"))
    assert shell.json("traffic", "body", "1", "-o", str(home / "p.png"))["size_bytes"] == len(PNG)
    assert (home / "p.png").read_bytes() == PNG
    piped = subprocess.run(ran_command("traffic", "body", "1"), capture_output=True, timeout=40)
    assert piped.stdout == PNG


@pytest.fixture
def hub(home: Path) -> Iterator[None]:
    """It runs before crabd has a refusal to be recorded, and ends after crabd has."""
    asyncio.run(hub_approvals("cli").list_approvals())
    yield
    end_hub()


@pytest.mark.usefixtures("hub")
def test_the_exact_bytes_are_not_for_agents(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/"))

    async def ask_as(principal: str) -> object:
        async with daemon_client(shell.place, principal, starts=False) as daemon:
            return await daemon.call("traffic.reveal_body", {"request_id": "1"})

    assert asyncio.run(ask_as("cli"))
    with pytest.raises(ScopeRequired):
        asyncio.run(ask_as("mcp"))


@pytest.mark.skipif(sys.platform != "linux", reason="panes are recognised by what /proc shows")
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    "words",
    [
        ("traffic", "show", "1", "--reveal"),
        ("traffic", "body", "1", "--reveal"),
        ("traffic", "replay", "1", "--with-secrets"),
        ("set", "listen", "0.0.0.0:0"),
    ],
)
def test_a_persons_command_is_refused_in_a_pane(
    shell: Shell, client: Client, site: Origin, words: tuple[str, ...]
) -> None:
    client.get(site.url("/"))
    in_pane = {**os.environ, "CRUX_PANE": "1"}
    said = subprocess.run(ran_command(*words), capture_output=True, text=True, timeout=40, env=in_pane)
    assert said.returncode != 0 and "in a pane" in said.stderr, said


def ran_command(*words: str) -> list[str]:
    import sys

    return [sys.executable, "-m", "dari", "proxy", *words]


def test_summary_and_diff(shell: Shell, client: Client, site: Origin) -> None:
    for number in (1, 2):
        client.get(site.url(f"/users/{number}"))
    said = shell("traffic", "summary").out.splitlines()
    assert said[1].split()[0] == "2" and said[1].endswith("/users/{id}")
    assert shell.json("traffic", "summary", "--host", "nowhere.example")["groups"] == []
    assert "/users/1 -> /users/2" in shell("traffic", "diff", "1", "2").out
    assert shell.json("traffic", "diff", "1", "2")["is_same"] is False


def test_wait_returns_the_request_that_fits_or_ends_with_2(shell: Shell, client: Client, site: Origin) -> None:
    assert "no such request" in shell("traffic", "wait", "--timeout-s", "0.05", code=2).err
    first = dari("traffic", "wait", "--url", "/wanted", "--timeout-s", "30", "--after-seq", "0", "--json")
    client.get(site.url("/other"))
    client.get(site.url("/wanted"))
    out, err = first.communicate(timeout=40)
    assert json.loads(out)["flow"]["url"] == site.url("/wanted"), err


def test_a_request_is_told_as_curl_and_python_and_sent_again(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/a"))
    assert shell("traffic", "curl", "1").out.startswith("curl ")
    assert "import httpx" in shell("traffic", "python", "1").out
    assert "urllib" in shell.json("traffic", "python", "1", "--client", "urllib")["code"]
    edits = ("--method", "PUT", "--url", site.url("/b"), "--header", "X-New: 1", "--body", "hello")
    again = shell.json("traffic", "replay", "1", *edits)
    assert (again["flow"]["replay_of"], again["flow"]["status"]) == (1, 200)
    sent = site.requests[-1]
    assert sent.head.startswith(b"PUT /b ") and (sent.header("x-new"), sent.body) == ("1", b"hello")
    said = shell("traffic", "replay", "1").out
    assert "GET     200" in said and '"name": "Ada"' in said


def test_a_request_is_made_from_nothing(shell: Shell, client: Client, site: Origin, home: Path) -> None:
    (home / "new.json").write_text("{}")
    shell("traffic", "send", site.url("/new"), "--header", "X-A: b", "--body", f"@{home / 'new.json'}")
    sent = site.requests[-1]
    assert sent.head.startswith(b"POST /new ") and (sent.header("x-a"), sent.body) == ("b", b"{}")
    shell("traffic", "send", site.url("/get"))
    assert site.requests[-1].head.startswith(b"GET /get ")
    assert "cannot read" in shell("traffic", "send", site.url("/"), "--body", "@/nowhere", code=3).err
    (home / "raw").write_bytes(b"\xff\xfe")
    assert "must be UTF-8 text" in shell("traffic", "send", site.url("/"), "--body", f"@{home / 'raw'}", code=1).err
    assert "url must be" in shell("traffic", "send", "nowhere", code=1).err


def test_clear_forgets(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/"))
    shell("traffic", "clear")
    assert shell.json("traffic")["flows"] == []


def test_follow_tells_every_request_once_as_it_ends(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/before"))
    follower = dari("traffic", "--follow", "--json", "--url-regex", "/(before|n[0-9]+)$")
    assert follower.stdout is not None
    try:
        assert json.loads(follower.stdout.readline())["url"] == site.url("/before")
        threads = [
            threading.Thread(target=client.get, args=(site.url(f"/n{number}"),), daemon=True) for number in range(20)
        ]
        client.get(site.url("/other"))
        for thread in threads:
            thread.start()
        seen = {json.loads(follower.stdout.readline())["url"] for _ in threads}
        for thread in threads:
            thread.join()
        assert seen == {site.url(f"/n{number}") for number in range(20)}
    finally:
        follower.send_signal(2)
        rest, err = follower.communicate(timeout=40)
    assert (rest, follower.returncode) == ("", 130), err


def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell, client: Client, site: Origin) -> None:
    for _ in range(3):
        client.get(site.url("/"))
    follower = dari("traffic", "--follow")
    assert follower.stdout is not None and follower.stderr is not None
    follower.stdout.readline()
    follower.stdout.close()
    client.get(site.url("/"))
    assert follower.wait(40) == 0
    assert follower.stderr.read() == ""
    follower.stderr.close()


def test_times_and_ids_that_are_none_are_refused(shell: Shell) -> None:
    assert "got 'yesterday'" in shell.refused("traffic", "--since", "yesterday")
    assert "request_id must be a number" in shell("traffic", "show", "abc", code=1).err
    assert "a status must be" in shell("traffic", "--status", "ok", code=1).err
    assert "must be 0 or more" in shell("traffic", "-n", "-1", code=1).err


def test_nothing_but_the_payload_is_on_stdout_when_a_script_asks(shell: Shell) -> None:
    said = ran("traffic", "show", "7", "--json")
    assert (said.code, said.out) == (1, "")
    assert json.loads(said.err)["error"]["name"] == "not_found"
