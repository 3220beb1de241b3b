"""Control, settings and CA by tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.proxy.throttle import PRESETS
from tests.support.proxy_tools import Refused, crab


async def test_the_proxy_starts_once_and_stops_as_often_as_asked(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        assert await tools.call("proxy_status") == {"status": "stopped"}
        assert await tools.call("proxy_start") == {"status": "running"}
        with pytest.raises(Refused) as twice:
            await tools.call("proxy_start")
        assert (twice.value.code, twice.value.message) == (-32003, "Proxy already running")
        info = await tools.call("proxy_info")
        assert info["address"] == f"127.0.0.1:{tools.proxy.port}"
        for _ in range(2):
            assert await tools.call("proxy_stop") == {"status": "stopped"}


async def test_every_setting_is_seen_in_the_configuration(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        await tools.call("engine_set_inspect_enabled", enabled=False)
        throttle = {
            "enabled": True,
            "latency_ms": 5,
            "downstream_bps": 1000,
            "upstream_bps": 500,
            "only_selected_hosts": True,
            "selected_hosts": ["slow.test"],
        }
        await tools.call("engine_set_throttle", **throttle)
        await tools.call("engine_set_client_allowlist", enabled=True, ips=["::ffff:10.0.0.7"])
        await tools.call("engine_set_transparent", enabled=False, listen_port=9999)
        await tools.proxy.service.settings.set_upstream(proxy="http://me:secret@up.test:3128")
        await tools.call("engine_set_upstream", insecure_hosts=["dev.test"])
        await tools.call("engine_set_policy", blocks_private_targets=True)
        config = await tools.call("engine_config_get")
        assert config["inspect"]["enabled"] is False
        assert throttle.items() <= config["throttle"].items()
        assert config["client_allowlist"] == {"enabled": True, "ips": ["10.0.0.7"]}
        assert config["transparent"] == {"enabled": False, "listen_port": 9999}
        assert config["upstream"]["insecure_hosts"] == ["dev.test"]
        assert "secret" not in config["upstream"]["proxy"]
        assert (config["blocks_private_targets"], config["passes_through_pinned"]) == (True, False)


@pytest.mark.parametrize("link", PRESETS)
async def test_a_slow_link_is_chosen_by_name(link: tuple[str, int, int, int], tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        set_to = await tools.call("engine_set_throttle_preset", preset=link[0], selected_hosts=["a.test"], jitter_ms=2)
        assert (set_to["latency_ms"], set_to["downstream_bps"], set_to["upstream_bps"]) == link[1:]
        assert (set_to["only_selected_hosts"], set_to["jitter_ms"]) == (True, 2)
        assert (await tools.call("engine_set_throttle_preset", preset="off"))["enabled"] is False


async def test_an_unknown_link_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        with pytest.raises(Refused) as unknown:
            await tools.call("engine_set_throttle_preset", preset="pigeon")
        assert unknown.value.code == -32602
        assert "56k modem" in unknown.value.hint


async def test_a_ca_is_made_shown_and_not_replaced_by_accident(tmp_path: Path) -> None:
    async with crab(tmp_path, starts=True) as tools:
        assert (await tools.call("ca_status"))["loaded"] is False
        made = await tools.call("ca_generate", name="Mine", days=30, key_type="rsa2048")
        assert made == await tools.call("ca_status")
        assert (made["key_type"], made["subject"]) == ("rsa2048", "CN=Mine")
        with pytest.raises(Refused) as again:
            await tools.call("ca_generate")
        assert "replace=true" in again.value.hint
        assert (await tools.call("ca_generate", replace=True))["sha256"] != made["sha256"]
        snippet = await tools.call("env_snippet", shell="fish")
        assert snippet["ca_cert_path"] == made["cert_path"]
        assert snippet["variables"]["HTTPS_PROXY"] == f"http://127.0.0.1:{tools.proxy.port}"
        assert "set -gx HTTPS_PROXY" in snippet["script"]


async def test_any_method_of_the_daemon_is_called_by_name(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        assert await tools.call("rpc", method="system.ping") == {"pong": True}
        assert await tools.call("rpc", method="engine.rules_add_allow", params={"matcher": "a.test"}) == {"ok": True}
        assert (await tools.call("rpc", method="engine.rules_dump"))["allowlist"] == ["a.test"]
        with pytest.raises(Refused) as unknown:
            await tools.call("rpc", method="no.such")
        assert unknown.value.message.endswith("unknown method: no.such")
        assert "proxy.status" in unknown.value.hint
        with pytest.raises(Refused) as wrong:
            await tools.call("rpc", method="engine.rules_add_allow", params={"matcher": None})
        assert wrong.value.code == -32602
        assert "engine.rules_add_allow" in wrong.value.hint


async def test_the_doctor_tells_what_to_do_next(tmp_path: Path) -> None:
    async with crab(tmp_path) as tools:
        found = await tools.call("daemon_doctor")
        assert found["ca"] == "missing"
        checks = {check["name"]: check for check in found["checks"]}
        assert "crab_ca_generate" in checks["ca"]["hint"]
