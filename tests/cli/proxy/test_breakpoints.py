"""`dari proxy breakpoints`: a request waits for a person."""

from __future__ import annotations

import threading

from tests.cli.proxy.test_rules import Client
from tests.support.origins.origin import Origin
from tests.support.proxy_command import Shell


def held(shell: Shell) -> str:
    (one,) = shell.json("breakpoints", "list", "--wait-s", "20")["held"]
    return str(one["id"])


def test_a_held_request_goes_on_with_changes(shell: Shell, site: Origin) -> None:
    client = Client(shell.started())
    assert shell("breakpoints").out == "Nothing is held\n"
    shell("rules", "add", "breakpoint", site.url("/pay"))
    thread = threading.Thread(target=client.get, args=(site.url("/pay"), "POST"), daemon=True)
    thread.start()
    one = held(shell)
    said = shell("breakpoints").out
    assert f"{one}  request  POST {site.url('/pay')}" in said and "goes on by itself in" in said
    edits = ("--header", "X-Role: admin", "--remove-header", "Accept-Encoding", "--body", "changed")
    assert "goes on" in shell("breakpoints", "resume", one, *edits).out
    thread.join(20)
    sent = site.requests[-1]
    assert (sent.header("x-role"), sent.header("accept-encoding"), sent.body) == ("admin", None, b"changed")


def test_a_response_gets_another_status_or_is_ended(shell: Shell, site: Origin) -> None:
    client = Client(shell.started())
    shell("rules", "add", "breakpoint", site.url("/r"), "--response", "--time-limit-s", "30")
    got: list[object] = []

    def ask() -> None:
        try:
            got.append(client.get(site.url("/r"))[0])
        except OSError as error:
            got.append(type(error))

    for words in (("--status", "500"), ("--abort",)):
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        shell("breakpoints", "resume", held(shell), *words)
        thread.join(20)
    assert got[0] == 500 and got[1] != 200


def test_what_is_not_held_is_told(shell: Shell) -> None:
    shell.started()
    said = shell("breakpoints", "resume", "b9", code=1).err
    assert "nothing is held under 'b9'" in said and "hint: " in said
