"""The pages at http://crab-proxy.local/ through which a device gets the CA's certificate."""

from __future__ import annotations

import base64
import hashlib
import uuid
from typing import TYPE_CHECKING

from dari.proxy.engine.hooks import LocalResponse

if TYPE_CHECKING:
    from dari.proxy.ca import CertificateAuthority  # 60 ms of cryptography that a start can do without

CERT_PAGE_HOSTS = frozenset(("crab-proxy.local", "crab-proxy.invalid", "proxy.crab"))

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Crab Proxy certificate</title>
<style>body{{font:16px/1.5 system-ui;max-width:40em;margin:2em auto;padding:0 1em}}
code{{overflow-wrap:anywhere}}</style>
<h1>Crab Proxy certificate</h1>
<p>Install it on this device to let the proxy decrypt its HTTPS traffic. Remove it when you are done.</p>
<ul><li><a href="/ios.mobileconfig">iPhone, iPad</a>: install the profile, then trust it in Settings → General → About →
Certificate Trust Settings</li><li><a href="/android.crt">Android</a></li>
<li><a href="/ca.pem">PEM</a> for Linux, macOS, curl, Python, Node</li>
<li><a href="/ca.der">DER</a> for Windows</li></ul>
<p>SHA-256 <code>{fingerprint}</code></p></html>
"""

_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>PayloadContent</key><array><dict>
<key>PayloadCertificateFileName</key><string>crab-proxy-ca.cer</string>
<key>PayloadContent</key><data>{data}</data>
<key>PayloadDisplayName</key><string>Crab Proxy CA</string>
<key>PayloadIdentifier</key><string>com.crabproxy.ca.{inner}</string>
<key>PayloadType</key><string>com.apple.security.root</string>
<key>PayloadUUID</key><string>{inner}</string>
<key>PayloadVersion</key><integer>1</integer></dict></array>
<key>PayloadDisplayName</key><string>Crab Proxy CA</string>
<key>PayloadIdentifier</key><string>com.crabproxy.profile.{outer}</string>
<key>PayloadType</key><string>Configuration</string>
<key>PayloadUUID</key><string>{outer}</string>
<key>PayloadVersion</key><integer>1</integer>
</dict></plist>
"""


class CertPage:
    def __init__(self, authority: CertificateAuthority | None) -> None:
        self._authority = authority

    def answer(self, method: str, path: bytes) -> LocalResponse:
        if method not in ("GET", "HEAD"):
            return _text(405, "only GET and HEAD\n", (b"Allow", b"GET, HEAD"))
        if self._authority is None:
            return _text(503, "no CA is loaded; generate or load one first\n")
        page = path.partition(b"?")[0]
        if page == b"/":
            html = _PAGE.format(fingerprint=self._authority.fingerprint)
            return _page(b"text/html; charset=utf-8", html.encode(), None)
        if page == b"/ca.pem":
            return _page(b"application/x-pem-file", self._authority.pem, b"crab-proxy-ca.pem")
        if page in (b"/ca.der", b"/android.crt"):
            name = b"crab-proxy-ca.crt" if page == b"/android.crt" else b"crab-proxy-ca.der"
            return _page(b"application/x-x509-ca-cert", self._authority.der, name)
        if page == b"/ios.mobileconfig":
            profile = _profile(self._authority.der)
            return _page(b"application/x-apple-aspen-config", profile, b"crab-proxy.mobileconfig")
        if page == b"/ca.crl":
            return _page(b"application/pkix-crl", self._authority.crl(), None)
        return _text(404, "the pages are /, /ca.pem, /ca.der, /android.crt, /ios.mobileconfig and /ca.crl\n")


def _profile(der: bytes) -> bytes:
    # The same certificate gives the same identifiers, so installing it twice replaces the profile.
    digest = hashlib.sha256(der).digest()
    inner, outer = (str(uuid.UUID(bytes=part, version=4)).upper() for part in (digest[:16], digest[16:]))
    return _PROFILE.format(data=base64.b64encode(der).decode("ascii"), inner=inner, outer=outer).encode()


def _page(kind: bytes, body: bytes, file_name: bytes | None) -> LocalResponse:
    headers = [(b"Content-Type", kind), (b"Cache-Control", b"no-store")]
    if file_name is not None:
        headers.append((b"Content-Disposition", b'attachment; filename="%b"' % file_name))
    return LocalResponse(200, tuple(headers), body)


def _text(status: int, text: str, *headers: tuple[bytes, bytes]) -> LocalResponse:
    return LocalResponse(status, ((b"Content-Type", b"text/plain; charset=utf-8"), *headers), text.encode())
