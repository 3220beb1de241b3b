"""Breakpoints: a real request waits, is edited, and goes on by hand or by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dari.errors import InvalidInput, NotFound
from tests.proxy.engine.rig import request, wire
from tests.proxy.origins.origin import origin
from tests.proxy.service.rig import Rig, proxy


async def held(rig: Rig, url: str, on: str = "request", time_limit_s: float = 15) -> str:
    rule = {"kind": "breakpoint", "matcher": url, "on": on, "time_limit_s": time_limit_s}
    return (await rig.service.rules.add(rule)).id


async def test_a_request_waits_and_goes_on_edited(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(
            rig.get(site.url("/a"), "Authorization: Bearer s3cret-value-123", method="POST", body=b"old")
        )
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert (waiting.on, waiting.method, waiting.url, waiting.body_sample) == (
            "request",
            "POST",
            site.url("/a"),
            "old",
        )
        assert "s3cret" not in str(waiting.headers) and site.requests == []
        edits = {"X-New": "1"}
        await rig.service.breakpoints.resume(waiting.id, url=site.url("/b"), set_headers=edits, body="new")
        assert (await asking).status == 200
        seen = site.requests[0]
        assert seen.head.startswith(b"POST /b ") and (seen.body, seen.header("x-new")) == (b"new", "1")
        assert seen.header("authorization") == "Bearer s3cret-value-123"
        assert (await rig.service.breakpoints.held()).held == []


async def test_a_response_waits_and_its_status_and_body_change(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), on="response")
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        assert (waiting.on, waiting.status) == ("response", 200)
        await rig.service.breakpoints.resume(waiting.id, status=404, body="gone")
        reply = await asking
        assert (reply.status, reply.body) == (404, b"gone")


async def test_it_goes_on_by_itself_after_its_time(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), time_limit_s=0.1)
        assert (await rig.get(site.url("/"))).status == 200
        assert len(site.requests) == 1


async def test_an_aborted_request_never_reaches_the_origin(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        await rig.service.breakpoints.resume(waiting.id, abort=True)
        assert (await asking).status == 502
        assert site.requests == []


async def test_a_wrong_edit_is_told_to_whoever_resumes_and_the_request_still_waits(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        (waiting,) = (await rig.service.breakpoints.wait(timeout_s=10)).held
        resume = rig.service.breakpoints.resume
        for wrong in (
            {"status": 200},
            {"method": "BAD METHOD"},
            {"url": "nowhere"},
            {"set_headers": {"Bad Name": "x"}},
            {"set_headers": {"X": "a\r\nb"}},
        ):
            with pytest.raises(InvalidInput):
                await resume(waiting.id, **wrong)  # type: ignore[arg-type]
        await resume(waiting.id)
        assert (await asking).status == 200
        with pytest.raises(NotFound):
            await resume(waiting.id)


async def test_a_client_that_left_is_no_longer_held(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"))
        async with wire(rig.machine.engine) as client:
            await client.send(request(site.url("/")))
            assert len((await rig.service.breakpoints.wait(timeout_s=10)).held) == 1
            client.reset()
        while (await rig.service.breakpoints.held()).held:  # noqa: ASYNC110 (the loop has to turn)
            await asyncio.sleep(0)
        assert site.requests == []


async def test_stopping_the_proxy_holds_nobody_back(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        await held(rig, site.url("/"), time_limit_s=600)
        asking = asyncio.ensure_future(rig.get(site.url("/")))
        await rig.service.breakpoints.wait(timeout_s=10)
        await rig.service.control.stop()
        with pytest.raises((ConnectionError, EOFError)):
            await asking
        assert (await rig.service.breakpoints.held()).held == []


async def test_waiting_in_vain_ends_with_nothing(tmp_path: Path) -> None:
    async with proxy(tmp_path) as rig:
        assert (await rig.service.breakpoints.wait(timeout_s=0.01)).held == []
