"""Traffic → Settings: throttle, recording, who may use the proxy, its way out, its CA; an agent's change is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.console import PHONE, NewPerson, Person, axe_in_every_look, has_no_sideways_scroll
from tests.support.console_hub import ConsoleHub
from tests.support.console_traffic import eventually, proxy_user

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


async def test_a_preset_own_values_and_full_speed_are_in_force(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        page = await person.open("/traffic/throttle")
        preset = page.get_by_role("button", name="3G")
        await preset.click()
        await expect(preset).to_have_attribute("aria-pressed", "true")
        throttle = (await user.agent.call("crab_engine_config_get"))["throttle"]
        assert (throttle["enabled"], throttle["latency_ms"]) == (True, 120)
        await page.get_by_label("Latency (ms)").fill("7")
        await page.get_by_label("Down (kB/s)").fill("50")
        await page.get_by_label("Only these hosts").fill("slow.test\nother.test")
        await page.get_by_role("button", name="Apply").click()
        await expect(page.get_by_text("only slow.test, other.test")).to_be_visible()
        throttle = (await user.agent.call("crab_engine_config_get"))["throttle"]
        assert (throttle["latency_ms"], throttle["downstream_bps"]) == (7, 50_000)
        await user.agent.call("crab_engine_set_throttle_preset", preset="off")
        await expect(page.get_by_text("Now: full speed")).to_be_visible()


async def test_switches_and_lists_are_saved(person: Person, hub: ConsoleHub) -> None:
    async with proxy_user(hub) as user:
        page = await person.open("/traffic/throttle")
        await page.get_by_role("switch", name="Keep bodies").uncheck()
        await page.get_by_role("checkbox", name="Only this machine and the listed addresses").check()
        await page.get_by_label("Addresses of other devices").fill("192.168.1.20")
        await page.get_by_role("form", name="Only this machine and the listed").get_by_role("button").click()
        await page.get_by_label("Hosts whose certificate is not checked").fill("self-signed.test")
        await page.get_by_role("form", name="Way to the origins").get_by_role("button", name="Save").click()

        async def is_saved() -> bool:
            config = await user.agent.call("crab_engine_config_get")
            return (
                config["inspect"]["enabled"] is False
                and config["client_allowlist"] == {"enabled": True, "ips": ["192.168.1.20"]}
                and config["upstream"]["insecure_hosts"] == ["self-signed.test"]
            )

        await eventually(is_saved)
        await page.get_by_label("Certificates to show to hosts").fill("a.test /no/cert.pem /no/key.pem")
        await page.get_by_role("form", name="Way to the origins").get_by_role("button", name="Save").click()
        await expect(page.get_by_text("file not found: /no/cert.pem")).to_be_visible()
        await page.get_by_role("textbox", name="Listen address").fill("nonsense")
        await page.get_by_role("form", name="Listen address").get_by_role("button", name="Save").click()
        await page.get_by_role("dialog").get_by_role("button", name="Open it").click()
        await expect(page.get_by_text("listen_addr must be host:port")).to_be_visible()


async def test_a_ca_is_made_downloaded_and_explained(person: Person, hub: ConsoleHub, tmp_path: Path) -> None:
    async with proxy_user(hub):
        page = await person.open("/traffic/throttle")
        await page.get_by_role("button", name="Make a CA").click()
        async with page.expect_download() as downloading:
            await page.get_by_role("button", name="Download certificate").click()
        path = tmp_path / "ca.pem"
        await (await downloading.value).save_as(path)
        assert path.read_text().startswith("-----BEGIN CERTIFICATE-----") and "KEY" not in path.read_text()
        await page.get_by_text("Programs in a shell").click()
        await expect(page.locator("pre").filter(has_text="HTTPS_PROXY")).to_be_visible()


async def test_the_settings_fit_every_look_and_a_phone(person: Person, new_person: NewPerson, hub: ConsoleHub) -> None:
    async with proxy_user(hub):
        page = await person.open("/traffic/throttle")
        await expect(page.get_by_role("button", name="3G")).to_be_visible()
        await axe_in_every_look(page)
        phone = await (await new_person(size=PHONE)).open("/traffic/throttle")
        await expect(phone.get_by_role("button", name="3G")).to_be_visible()
        await has_no_sideways_scroll(phone)
