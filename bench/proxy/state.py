"""The state of a Dari that has been used: ten rules, a CA, and a proxy that was running and so starts by itself."""

from pathlib import Path

import msgspec

from bench.proxy.origin import Origin
from dari.paths import private_dir, write_private
from dari.proxy.ca import CertificateAuthority
from dari.proxy.configuration import Configuration, UpstreamSettings
from dari.proxy.rules import RuleStore
from dari.proxy.rules.rule import AllowRule, AnyRule, MapLocalRule, MapLocalSource, MapRemoteRule, StatusRewriteRule


def prepare(home: Path, port: int, origin: Origin, *, decrypts: bool) -> None:
    private_dir(home.parent)
    private_dir(home)
    certificate, key = home / "ca.pem", home / "ca-key.pem"
    CertificateAuthority.generate().save(certificate, key)
    book = RuleStore()
    for rule in _rules(origin, decrypts):
        book.add(rule)
    write_private(home / "rules.json", book.dump_state())
    configuration = Configuration(
        listen_addr=f"127.0.0.1:{port}",
        ca_cert_path=str(certificate),
        ca_key_path=str(key),
        # As the peers: whom the origin's certificate names is checked by none of them here.
        upstream=UpstreamSettings(insecure_hosts=("127.0.0.1",)),
        is_running=True,
    )
    write_private(home / "config.json", msgspec.json.encode(configuration))


def _rules(origin: Origin, decrypts: bool) -> list[AnyRule]:
    """Ten: those that say what is recorded and decrypted, and others that are looked at for each request in vain."""
    ports = (origin.plain_port, origin.events_port, *((origin.tls_port,) if decrypts else ()))
    here, away = f"127.0.0.1:{origin.plain_port}", "http://127.0.0.1:1"
    rules: list[AnyRule] = [
        *(AllowRule(matcher=f"127.0.0.1:{port}") for port in ports),
        MapLocalRule(matcher="/api/users", source=MapLocalSource("text", "[]")),
        MapLocalRule(matcher=f"{here}/api/itemsets", source=MapLocalSource("text", "{}")),
        MapRemoteRule(matcher="/api/orders", destination=away),
        MapRemoteRule(matcher=f"{here}/old", destination=away),
        StatusRewriteRule(matcher="/api/fails", to_status_code=503),
        StatusRewriteRule(matcher="/login", from_status_code=401, to_status_code=200),
        MapRemoteRule(matcher="https://api.example.com/v1", destination=f"{away}/v2"),
        StatusRewriteRule(matcher="https://example.org", from_status_code=200, to_status_code=404),
    ]
    return rules[:10]
