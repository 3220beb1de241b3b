"""Topic `breakpoints`: two pages see what is held, and that it went on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dari.console.topics.breakpoints import follow_breakpoints
from tests.support.console_proxy import console_proxy, following, soon
from tests.support.origins.origin import origin
from tests.support.proxy_engine import request, wire


async def test_what_one_page_resumes_disappears_from_the_other(tmp_path: Path) -> None:
    async with (
        origin() as site,
        console_proxy(tmp_path) as (rig, backends),
        following(backends, follow_breakpoints) as one,
        following(backends, follow_breakpoints) as other,
    ):
        await rig.service.rules.add({"kind": "breakpoint", "matcher": site.url("/"), "time_limit_s": 60})
        assert (await one.next()).held == (await other.next()).held == []
        asking = asyncio.ensure_future(rig.get(site.url("/a")))
        (held,) = (await one.next()).held
        assert (held.url, [each.id for each in (await other.next()).held]) == (site.url("/a"), [held.id])
        await rig.service.breakpoints.resume(held.id, url=site.url("/b"))
        assert (await one.next()).held == (await other.next()).held == []
        assert (await soon(asking)).status == 200
        assert site.requests[0].head.startswith(b"GET /b ")


async def test_a_client_that_hangs_up_disappears_by_itself(tmp_path: Path) -> None:
    async with origin() as site, console_proxy(tmp_path) as (rig, backends):
        await rig.service.rules.add({"kind": "breakpoint", "matcher": site.url("/"), "time_limit_s": 60})
        async with following(backends, follow_breakpoints) as page, wire(rig.runtime.engine) as client:
            await page.next()
            await client.send(request(site.url("/")))
            assert len((await page.next()).held) == 1
            client.reset()
            assert (await page.next()).held == []
