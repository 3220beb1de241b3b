"""Topic `proxy`: settings as they are, and again when somebody changes them."""

from __future__ import annotations

from pathlib import Path

from dari.console.topics.proxy import follow_proxy
from tests.support.console_proxy import console_proxy, following


async def test_a_page_sees_a_setting_that_an_agent_changes(tmp_path: Path) -> None:
    async with console_proxy(tmp_path) as (rig, backends), following(backends, follow_proxy) as page:
        first = await page.next()
        assert (first.info.status, first.config.throttle.enabled, first.ca.loaded) == ("running", False, False)
        await rig.service.settings.set_throttle_preset("3G")
        assert (await page.next()).config.throttle.latency_ms == 120
        await rig.service.ca.generate()
        assert (await page.next()).ca.loaded
