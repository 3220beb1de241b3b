"""The variables and flags by which programs find a proxy and trust its CA."""

from __future__ import annotations

import shlex
import ssl
from pathlib import Path
from typing import Literal

from msgspec import Struct

Shell = Literal["sh", "fish", "powershell"]

REPLACED_ROOTS = (
    "SSL_CERT_FILE",  # OpenSSL, Go, Ruby, Rust, httpx
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "npm_config_cafile",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "BUNDLE_SSL_CA_CERT",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
)
"""Variables whose file stands in for a program's roots, so it has the system's too."""
ADDED_ROOTS = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
"""Variables whose file adds to a program's roots."""
_NO_PROXY = ""
"""Empty on purpose: a developer debugs localhost, which most programs would leave out."""


class Snippet(Struct, frozen=True):
    """`variables` for a program's environment, `script` to paste into a shell, `hints` for what ignores both."""

    proxy_url: str
    ca_cert_path: str | None
    variables: dict[str, str]
    script: str
    hints: list[str]


_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def trusted_roots(ca_pem: bytes) -> bytes:
    """Our CA after the system's: a program that takes one file must still trust the hosts that are not decrypted."""
    for name in (ssl.get_default_verify_paths().cafile, *_ROOTS):
        try:
            return Path(name or "").read_bytes().rstrip() + b"\n" + ca_pem
        except OSError:
            continue
    return ca_pem


def variables(address: str, ca_cert_path: str | None, bundle_path: str | None = None) -> dict[str, str]:
    """For curl, Python (requests, httpx, urllib), Node, Git, Go, Ruby and what else reads the usual names."""
    url = proxy_url(address)
    made = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), url)
    made |= {"NO_PROXY": _NO_PROXY, "no_proxy": _NO_PROXY, "NODE_USE_ENV_PROXY": "1"}
    if ca_cert_path is not None:
        made |= dict.fromkeys(REPLACED_ROOTS, bundle_path or ca_cert_path)
        made |= dict.fromkeys(ADDED_ROOTS, ca_cert_path)
        made["DENO_TLS_CA_STORE"] = "system,mozilla"
    return made


def snippet(address: str, ca_cert_path: str | None, bundle_path: str | None, shell: Shell = "sh") -> Snippet:
    """Ready to paste."""
    made = variables(address, ca_cert_path, bundle_path)
    url = proxy_url(address)
    hints = [f"Chromium: chromium --proxy-server={url} --proxy-bypass-list='<-loopback>'"]
    if ca_cert_path is None:
        hints.append("no CA is loaded, so HTTPS passes through unread: crab_ca_generate makes one")
    else:
        hints.insert(0, f"curl -x {url} --cacert {shlex.quote(ca_cert_path)} https://example.com/")
        hints.append("Java, and Node before 22.21: `dari proxy run -- CMD` sets what they need")
        hints.append("Go programs never use a proxy for localhost: call the server by this machine's name")
        hints.append("phones and browsers: open http://crab-proxy.local/ through the proxy to install the certificate")
    lines = [_line(name, value, shell) for name, value in made.items()]
    return Snippet(url, ca_cert_path, made, "\n".join(lines), hints)


def proxy_url(address: str) -> str:
    host, _, port = address.rpartition(":")
    return f"http://{ {'0.0.0.0': '127.0.0.1', '[::]': '[::1]'}.get(host, host) }:{port}"


def _line(name: str, value: str, shell: Shell) -> str:
    if shell == "fish":
        return f"set -gx {name} {shlex.quote(value)}"
    if shell == "powershell":
        quoted = value.replace("'", "''")
        return f"$env:{name} = '{quoted}'"
    return f"export {name}={shlex.quote(value)}"
