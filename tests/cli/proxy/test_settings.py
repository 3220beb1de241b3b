"""`dari proxy config`, `set` and `ca`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dari.proxy.ca import CertificateAuthority
from tests.support.proxy_command import Shell

SETTINGS: tuple[tuple[tuple[str, ...], str, object], ...] = (
    (("listen", "127.0.0.1:9999"), "listen_addr", "127.0.0.1:9999"),
    (("inspect", "off"), "inspect.enabled", False),
    (("throttle", "--latency-ms", "5", "--down", "64k", "--up", "1m"), "throttle.downstream_bps", 65536),
    (("throttle", "--latency-ms", "5", "--host", "a.example"), "throttle.selected_hosts", ["a.example"]),
    (("preset", "3g"), "throttle.latency_ms", 120),
    (("preset", "3G", "--host", "b.example"), "throttle.only_selected_hosts", True),
    (("allowlist", "on", "192.168.1.20"), "client_allowlist.ips", ["192.168.1.20"]),
    (("transparent", "on", "--port", "9998"), "transparent.listen_port", 9998),
    (("upstream", "--proxy", "http://proxy.example:3128"), "upstream.proxy", "http://proxy.example:3128"),
    (("upstream", "--insecure-host", "a", "--insecure-host", "b"), "upstream.insecure_hosts", ["a", "b"]),
    (("policy", "--block-private", "on"), "blocks_private_targets", True),
    (("policy", "--pass-pinned", "on"), "passes_through_pinned", True),
)


def test_a_setting_is_in_force_and_shown(shell: Shell) -> None:
    for words, part, expected in SETTINGS:
        answered: Any = shell.json("set", *words)
        for name in part.split("."):
            answered = answered[name]
        assert answered == expected, words
    said = shell("config").out
    assert said.startswith("listen          127.0.0.1:9999 (stopped)\n")
    assert "throttle        120 ms, down 99328 B/s, up 41984 B/s for b.example\n" in said


def test_settings_are_taken_back(shell: Shell, home: Path) -> None:
    shell("set", "preset", "3G")
    assert shell.json("set", "throttle", "off")["throttle"]["enabled"] is False
    shell("set", "preset", "4G")
    assert shell.json("set", "preset", "off")["throttle"]["enabled"] is False
    authority = CertificateAuthority.generate("client")
    authority.save(home / "c.pem", home / "c.key")
    certificate = ("--client-cert", "bank.example", str(home / "c.pem"), str(home / "c.key"))
    shell("set", "upstream", "--proxy", "http://p.example:1", "--insecure-host", "a", *certificate)
    kept = shell.json("set", "upstream", "--proxy", "none")["upstream"]
    assert kept["proxy"] is None and kept["insecure_hosts"] == ["a"]
    assert kept["client_certificates"][0]["host"] == "bank.example"
    gone = shell.json("set", "upstream", "--insecure-host", "none", "--no-client-certs")["upstream"]
    assert (gone["insecure_hosts"], gone["client_certificates"]) == ([], [])


MISTAKES: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("listen", "localhost:1"), 1, "listen_addr must be host:port"),
    (("preset", "5G"), 1, "no throttle preset is called '5G'"),
    (("throttle",), 1, "needs a limit"),
    (("upstream",), 1, "nothing to change"),
    (("policy",), 1, "nothing to change"),
    (("allowlist", "on", "somewhere"), 1, "invalid IP address"),
    (("upstream", "--ca-file", "/nowhere.pem"), 3, "file not found"),
)


def test_a_wrong_setting_changes_nothing(shell: Shell) -> None:
    before = shell.json("config")
    for words, code, said in MISTAKES:
        err = shell("set", *words, code=code).err
        assert said in err and "hint: " in err
    assert shell.json("config") == before


def test_words_that_are_no_switch_and_no_rate_are_refused(shell: Shell) -> None:
    assert "must be 'on' or 'off'" in shell.refused("set", "inspect", "maybe")
    assert "got 'fast'" in shell.refused("set", "throttle", "--down", "fast")
    assert "got 'nan'" in shell.refused("set", "throttle", "--down", "nan")


def test_a_ca_is_made_shown_exported_and_replaced(shell: Shell, home: Path) -> None:
    assert "dari proxy ca generate" in shell("ca").out
    assert "dari proxy ca generate" in shell("ca", "export", code=1).err
    made = shell.json("ca", "generate", "--name", "Mine", "--days", "30", "--key-type", "rsa2048")
    assert (made["subject"], made["key_type"]) == ("CN=Mine", "rsa2048")
    assert "--replace" in shell("ca", "generate", code=3).err
    assert shell.json("ca", "generate", "--replace")["sha256"] != made["sha256"]
    pem = shell("ca", "export").out
    assert pem.startswith("-----BEGIN CERTIFICATE-----") and "PRIVATE" not in pem
    shell("ca", "export", str(home / "ca.pem"))
    assert (home / "ca.pem").read_text() == pem
    said = shell("ca").out
    assert "SHA-256" in said and "crab_" not in said


def test_a_ca_of_ones_own_is_loaded(shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = CertificateAuthority.generate("Company CA")
    authority.save(home / "ca.pem", home / "ca.key")
    monkeypatch.chdir(home)
    assert shell.json("ca", "load", "ca.pem", "ca.key")["subject"] == "CN=Company CA"
    assert "file not found" in shell("ca", "load", "ca.pem", "missing.key", code=3).err
