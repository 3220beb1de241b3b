"""What only a person may open: the proxy to other machines, its traffic to another proxy; and what protects us then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.daemon.caller_scopes import caller_has, limit_scopes
from dari.daemon.errors import ScopeRequired
from dari.errors import Denied
from dari.proxy import daemon
from dari.proxy.api.service import remote_service
from dari.proxy.runtime import ProxyRuntime
from tests.support.crab_processes import crabd, run_directory
from tests.support.origins.origin import origin
from tests.support.proxy_service import proxy
from tests.support.proxy_tools import Refused, crab

ADDRESSES = ["0.0.0.0:0", "[::]:0", "192.0.2.7:8888", "[2001:db8::1]:8888", "[::ffff:0.0.0.0]:0"]


@pytest.mark.parametrize("address", ADDRESSES)
async def test_an_agent_may_not_listen_for_other_machines(address: str, tmp_path: Path) -> None:
    async with crab(tmp_path) as rig:
        before = await rig.call("engine_config_get")
        for name, arguments in (
            ("engine_set_listen_addr", {"listen_addr": address}),
            ("rpc", {"method": "engine.set_listen_addr", "params": {"listen_addr": address}}),
        ):
            with pytest.raises(Refused) as refused:
                await rig.call(name, **arguments)
            assert refused.value.code == Denied.code
            assert "admin" in refused.value.hint and "dari proxy set listen" in refused.value.hint
        assert await rig.call("engine_config_get") == before


async def test_the_daemon_asks_for_the_admin_scope_of_the_token() -> None:
    with run_directory() as run_dir:
        async with crabd(run_dir):
            place = daemon.CrabPaths(run_dir)
            agent = remote_service(daemon.crabd_client(place, "mcp", starts=False, keep=False))
            person = remote_service(daemon.crabd_client(place, "cli", starts=False, keep=False))
            with pytest.raises(ScopeRequired):
                await agent.settings.set_listen_addr("0.0.0.0:0")
            await person.settings.set_listen_addr("0.0.0.0:0")
            assert (await person.settings.dump()).blocks_private_targets
            with pytest.raises(ScopeRequired):
                await agent.settings.set_policy(blocks_private_targets=False)


async def test_an_agent_may_not_widen_what_a_person_opened(tmp_path: Path) -> None:
    async with crab(tmp_path) as rig:
        await rig.proxy.service.settings.set_listen_addr("0.0.0.0:0")
        await rig.proxy.service.settings.set_client_allowlist(True, ["192.0.2.1"])
        calls: list[tuple[str, dict[str, Any]]] = [
            ("engine_set_transparent", {"enabled": True, "listen_port": 8889}),
            ("engine_set_listen_addr", {"listen_addr": "0.0.0.0:8999"}),
            ("engine_set_client_allowlist", {"enabled": False, "ips": []}),
            ("engine_set_client_allowlist", {"enabled": True, "ips": ["192.0.2.1", "192.0.2.2"]}),
            ("engine_set_client_allowlist", {"enabled": True, "ips": ["192.0.2.2"]}),
            ("engine_set_policy", {"blocks_private_targets": False}),
        ]
        for name, arguments in calls:
            with pytest.raises(Refused) as refused:
                await rig.call(name, **arguments)
            assert refused.value.code == Denied.code
        # Closing it again is nobody's privilege.
        await rig.call("engine_set_client_allowlist", enabled=True, ips=[])
        await rig.call("engine_set_listen_addr", listen_addr="127.0.0.1:0")
        await rig.call("engine_set_transparent", enabled=False, listen_port=8889)


async def test_the_private_target_block_turns_on_with_the_bind_and_off_with_it(tmp_path: Path) -> None:
    async with origin() as site, proxy(tmp_path) as rig:
        settings = rig.service.settings
        assert (await rig.get(site.url("/"))).status == 200
        await settings.set_listen_addr("0.0.0.0:0")
        assert (await settings.dump()).blocks_private_targets
        assert (await rig.get(site.url("/"))).status == 403
        await settings.set_policy(blocks_private_targets=False)  # by a person, who debugs from a phone
        assert (await rig.get(site.url("/"))).status == 200
        await settings.set_listen_addr("127.0.0.1:0")
        assert not (await settings.dump()).blocks_private_targets
        assert (await rig.get(site.url("/"))).status == 200
        await settings.set_listen_addr("0.0.0.0:0")
        assert (await rig.get(site.url("/"))).status == 403
    config = tmp_path / "state" / "config.json"
    config.write_text('{"listen_addr": "0.0.0.0:0", "blocks_private_targets": false}')
    runtime = await ProxyRuntime.open(tmp_path / "state")
    try:
        assert runtime.gate.targets.enabled  # also for a file of an older version
    finally:
        await runtime.close()


async def test_a_caller_never_has_more_scopes_than_the_one_it_serves() -> None:
    assert caller_has("admin")
    with limit_scopes(("read", "control")):
        with limit_scopes(("read", "admin")):
            assert caller_has("read") and not caller_has("admin") and not caller_has("control")
        assert caller_has("control")
    assert caller_has("admin")


async def test_an_agent_may_take_an_upstream_proxy_away_and_not_name_one(tmp_path: Path) -> None:
    async with crab(tmp_path) as rig:
        for name, arguments in (
            ("engine_set_upstream", {"proxy": "http://127.0.0.1:9", "insecure_hosts": ["*"]}),
            ("rpc", {"method": "engine.set_upstream", "params": {"proxy": "socks5://127.0.0.1:9"}}),
        ):
            with pytest.raises(Refused) as refused:
                await rig.call(name, **arguments)
            assert refused.value.code == Denied.code and "dari proxy set upstream --proxy" in refused.value.hint
        config = await rig.call("engine_config_get")
        assert config["upstream"]["proxy"] is None and config["upstream"]["insecure_hosts"] == []
        await rig.proxy.service.settings.set_upstream(proxy="http://127.0.0.1:9")
        await rig.call("engine_set_upstream", proxy="")
        assert (await rig.call("engine_config_get"))["upstream"]["proxy"] is None
