"""`dari proxy rules`: each kind acts on the next request, and says what it is."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.origins.origin import Origin, answering
from tests.support.proxy_command import JSON_BODY, Shell, serving


class Client:
    """Requests through the proxy, one connection each."""

    def __init__(self, proxy_url: str) -> None:
        self.port = urlsplit(proxy_url).port

    def get(self, url: str, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, url)
            response = connection.getresponse()
            return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()


@pytest.fixture
def client(shell: Shell) -> Client:
    return Client(shell.started())


def added(shell: Shell, *words: str) -> dict[str, Any]:
    rule: dict[str, Any] = shell.json("rules", "add", *words)
    return rule


def test_map_local_answers_from_a_text_or_a_file(shell: Shell, client: Client, site: Origin, home: Path) -> None:
    text = ("--text", '{"a":1}', "--status", "418", "--content-type", "application/json")
    assert added(shell, "map-local", site.url("/text"), *text)["kind"] == "map_local"
    status, body, headers = client.get(site.url("/text"))
    assert (status, body, headers["content-type"]) == (418, b'{"a":1}', "application/json")
    (home / "page.html").write_text("<p>")
    added(shell, "map-local", site.url("/file"), "--file", str(home / "page.html"))
    status, body, headers = client.get(site.url("/file"))
    assert (status, body, headers["content-type"]) == (200, b"<p>", "text/html")
    assert site.requests == []
    assert "does not exist" in shell("rules", "add", "map-local", "x", "--file", str(home / "missing"), code=3).err


def test_map_remote_and_status(shell: Shell, client: Client, site: Origin) -> None:
    with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother")) as other:
        added(shell, "map-remote", site.url("/old/"), other.url("/new/"))
        assert client.get(site.url("/old/x"))[:2] == (200, b"other")
        assert other.requests[0].head.startswith(b"GET /new/x ")
    added(shell, "status", site.url("/pay"), "--from", "200", "--to", "503", "--method", "post")
    assert client.get(site.url("/pay"))[0] == 200
    assert client.get(site.url("/pay"), "POST")[0] == 503


def test_block_delay_fault_header_and_body(shell: Shell, client: Client, site: Origin) -> None:
    added(shell, "block", site.url("/ad*"), "--glob", "--status", "451")
    assert client.get(site.url("/ads/1"))[0] == 451
    added(shell, "header", site.url("/h"), "--set", "X-Debug: 1", "--remove", "Accept-Encoding")
    added(shell, "header", site.url("/h"), "--response", "--add", "X-Seen: yes")
    assert client.get(site.url("/h"))[2]["x-seen"] == "yes"
    assert site.requests[-1].header("x-debug") == "1"
    assert site.requests[-1].header("accept-encoding") is None
    added(shell, "body", site.url("/b"), "--find", "Ada", "--text", "Bob")
    assert client.get(site.url("/b"))[1] == JSON_BODY.replace(b"Ada", b"Bob")
    added(shell, "delay", site.url("/slow"), "--ms", "1", "--jitter-ms", "1")
    assert client.get(site.url("/slow"))[0] == 200
    added(shell, "fault", site.url("/reset"))
    with pytest.raises(ConnectionError):
        client.get(site.url("/reset"))
    added(shell, "fault", site.url("/cut"), "--after-bytes", "4")
    with pytest.raises(http.client.IncompleteRead):
        client.get(site.url("/cut"))
    assert shell.json("rules", "list", "--kind", "fault")["rules"][1]["hits"] == 1


def test_a_recorded_answer_becomes_a_mock(shell: Shell, client: Client, site: Origin) -> None:
    client.get(site.url("/user"))
    rule = added(shell, "mock", "1", "--method", "GET")
    assert (rule["kind"], rule["method"]) == ("mock", "GET")
    assert client.get(site.url("/user"))[1] == JSON_BODY
    assert len(site.requests) == 1


def test_the_list_shows_what_each_rule_does_and_warnings_on_stderr(shell: Shell) -> None:
    assert "No rules" in shell("rules").out
    said = shell("rules", "add", "allow", "example.com")
    assert said.out == "r1 added: allow example.com\n" and said.err == ""
    said = shell("rules", "add", "map-remote", "https://a.example/*", "https://b.example/")
    assert said.err.startswith("warning: ") and "--glob" in said.err
    shell("rules", "add", "status", "x.example", "--to", "404", "--disabled")
    shell("rules", "add", "body", "x.example", "--text", "a\x1b]0;title\x07")
    said = shell("rules")
    lines = said.out.splitlines()
    assert lines[0].split() == ["ID", "KIND", "HITS", "METHOD", "MATCHER"]
    assert "-> https://b.example/" in lines[2]
    assert lines[3].endswith("any status -> 404 (disabled)")
    assert "\x1b" not in said.out
    assert "warning: r2: " in said.err


def test_a_person_lets_a_map_remote_rule_send_credentials(shell: Shell, client: Client, site: Origin) -> None:
    added(shell, "map-remote", "https://a.example/", "https://b.example/")
    assert shell("rules", "keep-credentials", "r1").out == "r1 sends credentials to another origin\n"
    assert shell.json("rules", "list")["rules"][0]["settings"]["keeps_credentials"] is True
    assert shell("rules", "keep-credentials", "r1", "--off").out == "r1 sends no credentials to another origin\n"


def test_rules_are_switched_changed_and_removed_by_id(shell: Shell, client: Client, site: Origin) -> None:
    added(shell, "map-local", site.url("/x"), "--text", "one")
    assert shell("rules", "disable", "r1").out == "r1 is off\n"
    assert client.get(site.url("/x"))[1] == JSON_BODY
    shell("rules", "enable", "r1")
    changed = shell.json("rules", "update", "r1", "--text", "two", "--set", "status_code=201", "--method", "GET")
    assert (changed["settings"]["status_code"], changed["method"]) == (201, "GET")
    assert client.get(site.url("/x"))[:2] == (201, b"two")
    changed = shell.json("rules", "update", "r1", "--method", "any", "--matcher", site.url("/y"), "--prefix")
    assert (changed["method"], changed["matcher"]) == (None, site.url("/y"))
    added(shell, "block", "ads.example")
    assert "r1 removed: map-local" in shell("rules", "remove", "r1", "r2").out
    added(shell, "block", "a.example")
    added(shell, "allow", "b.example")
    assert shell.json("rules", "clear", "--kind", "block") == {"removed": 1}
    assert shell.json("rules", "clear") == {"removed": 1}


def test_rules_are_moved_and_brought_back(shell: Shell, client: Client, site: Origin) -> None:
    for text in ("one", "two"):
        added(shell, "map-local", site.url("/x"), "--text", text)
    assert shell("rules", "move", "r2", "--before", "r1").out == "r2 is tried before r1 now\n"
    assert client.get(site.url("/x"))[1] == b"two"
    assert shell("rules", "move", "r2").out == "r2 is last now\n"
    shell("rules", "remove", "r1")
    assert client.get(site.url("/x"))[1] == b"two"
    assert "r1 is back: map-local" in shell("rules", "restore", "r1").out
    assert client.get(site.url("/x"))[1] == b"one"
    assert "no removed rule 'r9' is kept" in shell("rules", "restore", "r9", code=1).err


def test_test_tells_what_applies_and_what_nearly_did(shell: Shell) -> None:
    added(shell, "block", "https://example.com/a", "--method", "POST")
    said = shell("rules", "test", "https://example.com/a").out
    assert said.startswith("GET https://example.com/a\n")
    assert "not decrypted" in said and "method differs" in said
    assert "hint: generate or load a CA" in said
    found = shell.json("rules", "test", "http://example.com/", "--method", "PUT")
    assert (found["method"], found["is_decrypted"]) == ("PUT", None)


MISTAKES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("remove", "r9"), "no rule has the id 'r9'"),
    (("add", "header", "x.example"), "no header to change"),
    (("add", "block", "x.example", "--status", "7"), "status_code 7 is out of range"),
    (("add", "allow", "(", "--regex"), "regular expression"),
    (("update", "r9", "--set", "enabled=false"), "no rule has the id 'r9'"),
    (("test", "ftp://x"), "is not an http or https URL"),
)


def test_what_is_wrong_is_told_with_the_value_and_a_hint(shell: Shell) -> None:
    for words, said in MISTAKES:
        err = shell("rules", *words, code=1).err
        assert err.startswith("error: ") and said in err and "\nhint: " in err
        assert "crab_" not in err


def test_the_parser_names_the_words_it_takes(shell: Shell) -> None:
    assert "map-local" in shell.refused("rules", "add", "nothing", "x")
    assert "--text" in shell.refused("rules", "add", "map-local", "x.example")
    assert "must be 'Name: value'" in shell.refused("rules", "add", "header", "x.example", "--set", "no-colon")
    assert "MEMBER=VALUE" in shell.refused("rules", "update", "r1", "--set", "enabled")
    assert shell.daemon_pid is None


def test_an_argument_that_is_no_text_is_told_and_not_a_traceback(shell: Shell) -> None:
    assert "got 'a\\\\udcff'" in shell("rules", "add", "allow", "a\udcff", code=1).err
