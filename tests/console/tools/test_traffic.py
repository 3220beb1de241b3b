"""Tools of the Traffic page: rows, the filter's check and help, secrets for a person alone."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dari.console.backends import ConsoleBackends
from dari.console.static_files import FOLDER
from dari.console.tools.traffic import TrafficPageTools
from dari.core.scopes import ADMIN
from dari.core.tool import tools_of
from dari.daemon.caller_scopes import serve_own_process
from dari.errors import InvalidInput
from dari.proxy.query.language import KEYS
from tests.support.origins.origin import answering, origin
from tests.support.proxy_service import Rig, proxy

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PICTURE = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n%b" % (len(PNG), PNG)


def tools_over(rig: Rig) -> TrafficPageTools:
    return TrafficPageTools(cast(ConsoleBackends, SimpleNamespace(proxy=lambda starts: rig.service)))


def test_every_tool_is_for_a_person_and_only_reads() -> None:
    tools = tools_of(TrafficPageTools(cast(ConsoleBackends, SimpleNamespace(proxy=None))))
    assert {tool.scope for tool in tools} == {ADMIN}
    assert all(tool.name.startswith("dari_traffic_") for tool in tools)


async def test_rows_are_paged_by_id_and_filtered(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        for number in range(5):
            await rig.get(site.url(f"/p{number}"))
        tools = tools_over(rig)
        newest = await tools.rows(limit=2)
        assert [row.path for row in newest.rows] == ["/p3", "/p4"] and newest.next_before_id is not None
        older = await tools.rows("-/p1", before_id=newest.rows[0].id)
        assert [row.path for row in older.rows] == ["/p0", "/p2"] and older.next_before_id is None
        with pytest.raises(InvalidInput):
            await tools.rows("is:")


async def test_a_filter_is_checked_and_the_wrong_characters_are_named(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        tools = tools_over(rig)
        assert (await tools.check_filter("host:a.test or -status:5xx")).ok
        wrong = await tools.check_filter("host:a.test stauts:5xx")
        assert (wrong.ok, wrong.start, wrong.end) == (False, 12, 18)
        assert "stauts" in wrong.problem and "status" in wrong.hint


async def test_help_has_every_key_of_the_language(tmp_path: Path) -> None:
    async with proxy(tmp_path, starts=False) as rig:
        help_ = await tools_over(rig).filter_help()
        assert [each.key for each in help_.keys] == list(KEYS) and help_.examples


def test_the_page_explains_every_key_in_both_languages() -> None:
    texts = (FOLDER / "js/texts/traffic.js").read_text()
    for key in KEYS:
        assert len(re.findall(rf'"traffic\.help\.{key}":', texts)) == 2, key


async def test_secrets_are_shown_to_a_person_and_not_to_others(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/x?token=s3cr3t-value-99"), "Authorization: Bearer abcdefghijklmnop")
        tools = tools_over(rig)
        hidden = await rig.service.traffic.show("1")
        assert "s3cr3t" not in str(hidden) and "abcdefghijklmnop" not in str(hidden)
        with serve_own_process({"admin"}):
            shown = await tools.reveal("1")
        assert "s3cr3t-value-99" in shown.flow["url"] and "abcdefghijklmnop" in shown.flow["request_headers"]


async def test_bytes_of_a_body_come_in_pieces(tmp_path: Path) -> None:
    async with origin(answering(PICTURE)) as site, proxy(tmp_path) as rig:
        await rig.get(site.url("/logo.png"))
        tools = tools_over(rig)
        whole = await tools.reveal_body("1")
        assert base64.b64decode(whole.data_base64) == PNG
        assert (whole.mime, whole.total_bytes, whole.is_whole) == ("image/png", len(PNG), True)
        piece = await tools.reveal_body("1", start=8, max_bytes=4)
        assert base64.b64decode(piece.data_base64) == PNG[8:12]
