"""A command in the foreground: its terminal, signals and exit code, and the environment that sends it to the proxy.

bundles   a CA file that is named already keeps its certificates; ours is added in a copy
Java      a trust store made for the run, and the proxy as system properties
Node      a preload for versions that do not read proxy variables themselves
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from dari.proxy.client_environment import ADDED_ROOTS, REPLACED_ROOTS

_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
AFTER_TERM_S = 5.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class Signals:
    """What reaches us is the command's while it runs; before that it ends us, afterwards nothing interrupts.

    A signal that our caller ignores (`nohup`, a job in the background) stays ignored, by the command too.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._process: asyncio.subprocess.Process | None = None
        self._is_over = False
        self.ended_by: int | None = None
        """The signal that came before the command could start."""

    def __enter__(self) -> Signals:
        loop = asyncio.get_running_loop()
        for number in (*_FROM_TERMINAL, *_FORWARDED):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue
            with suppress(RuntimeError, ValueError):  # not the main thread
                loop.add_signal_handler(number, self._arrived, number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (*_FROM_TERMINAL, *_FORWARDED):
            with suppress(RuntimeError, ValueError):
                loop.remove_signal_handler(number)

    def belong_to(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def over(self) -> None:
        """The command has ended: what is left to do is done to its end."""
        self._process, self._is_over = None, True

    def _arrived(self, number: int) -> None:
        if self._process is not None:
            # Ctrl-C goes to every process in the foreground of the terminal; a second one would mean "at once".
            if number in _FROM_TERMINAL and _is_foreground():
                return
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
        elif not self._is_over:
            # What was begun at crabd is known to us only when its reply has come, so the first one waits for that.
            if self.ended_by is not None and self._task is not None:
                self._task.cancel()
            self.ended_by = number


async def run_child(words: Sequence[str], environment: Mapping[str, str], signals: Signals) -> int:
    """Run it to its end; its exit code, with 128 added to the number of a signal that ended it."""
    try:
        process = await asyncio.create_subprocess_exec(*words, env=dict(environment))
    except OSError as error:
        print(f"dari proxy run: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    signals.belong_to(process)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(AFTER_TERM_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        raise
    finally:
        signals.over()
    return code if code >= 0 else 128 - code


def _is_foreground() -> bool:
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            return os.tcgetpgrp(descriptor) == os.getpgrp()
    return False


PRELOAD = r"""'use strict';
(() => {
  const url = process.env.HTTPS_PROXY || process.env.https_proxy || process.env.HTTP_PROXY || process.env.http_proxy;
  if (!url) return;
  const [major, minor] = process.versions.node.split('.').map(Number);
  const native = process.env.NODE_USE_ENV_PROXY === '1';
  const nativeHttp = native && (major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21));
  const nativeFetch = native && major >= 24;
  if (nativeHttp && nativeFetch) return;
  let proxy;
  try { proxy = new URL(url); } catch { return; }
  if (proxy.protocol !== 'http:') return;
  const net = require('net'), tls = require('tls'), http = require('http'), https = require('https');
  const proxyHost = proxy.hostname.replace(/^\[|\]$/g, ''), proxyPort = Number(proxy.port) || 80;

  const tunnel = (host, port, done) => {
    const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
    const socket = net.connect(proxyPort, proxyHost);
    let head = Buffer.alloc(0);
    const fail = (error) => { socket.destroy(); done(error); };
    socket.once('error', fail);
    socket.once('connect', () => socket.write(`CONNECT ${name}:${port} HTTP/1.1\r\nHost: ${name}:${port}\r\n\r\n`));
    const read = () => {
      let chunk;
      while ((chunk = socket.read()) !== null) {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) { if (head.length > 65536) return fail(new Error('the proxy sent no HTTP')); continue; }
        socket.removeListener('readable', read);
        socket.removeListener('error', fail);
        socket.removeListener('end', ended);
        const status = Number(head.toString('latin1', 0, 16).split(' ')[1]);
        if (status !== 200) return fail(new Error(`the proxy answered ${status} for ${name}:${port}`));
        const rest = head.subarray(end + 4);
        if (rest.length) socket.unshift(rest);
        return done(null, socket);
      }
    };
    const ended = () => fail(new Error('the proxy closed the connection'));
    socket.on('readable', read);
    socket.once('end', ended);
  };

  const connect = (options, done, secure) => {
    const host = options.host || options.hostname || 'localhost';
    tunnel(host, options.port || (secure ? 443 : 80), (error, socket) => {
      if (error) return done(error);
      if (!secure) return done(null, socket);
      const servername = options.servername || (net.isIP(host) ? '' : host);
      const layer = tls.connect({ ...options, path: undefined, socket, host, servername });
      layer.once('error', done);
      layer.once('secureConnect', () => { layer.removeListener('error', done); done(null, layer); });
    });
  };

  if (!nativeHttp) {
    class PlainAgent extends http.Agent {
      createConnection(options, done) { connect(options, done, false); }
    }
    class SecureAgent extends https.Agent {
      createConnection(options, done) { connect(options, done, true); }
    }
    http.globalAgent = new PlainAgent({ keepAlive: true });
    https.globalAgent = new SecureAgent({ keepAlive: true });
  }
  if (!nativeFetch && typeof globalThis.fetch === 'function') {
    const symbol = Symbol.for('undici.globalDispatcher.1');
    try { globalThis.fetch('data:,').catch(() => {}); } catch { /* it only had to be loaded */ }
    const dispatcher = globalThis[symbol];
    if (dispatcher) {
      const Agent = dispatcher.constructor;
      globalThis[symbol] = new Agent({
        connect: (options, done) => connect(
          { ...options, host: options.hostname }, done, options.protocol === 'https:'),
      });
    }
  }
})();
"""


MAX_BUNDLE_BYTES = 16 * 1024 * 1024
STORE_PASSWORD = "changeit"
_END = b"-----END CERTIFICATE-----"


class ProxyAddress(NamedTuple):
    host: str
    port: int


def joined_environment(
    given: Mapping[str, str], ca_cert_path: str | None, address: ProxyAddress, before: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """`before` is the caller's environment, `given` what the proxy asks for; files go to `folder`."""
    made = {**before, **given}
    if before.get("DENO_TLS_CA_STORE"):
        made["DENO_TLS_CA_STORE"] = before["DENO_TLS_CA_STORE"]
    if ca_cert_path is not None:
        ours = Path(ca_cert_path).read_bytes()
        made |= dict(_with_earlier_bundles(before, ours, folder))
        if _has_java(before):
            store = folder / "trust.p12"
            store.write_bytes(_trust_store(Path(made["SSL_CERT_FILE"]).read_bytes() + b"\n" + ours))
            made["JAVA_TOOL_OPTIONS"] = _joined(before.get("JAVA_TOOL_OPTIONS"), *_java_trust(store))
    if _has_java(before):
        earlier = made.get("JAVA_TOOL_OPTIONS") if ca_cert_path is not None else before.get("JAVA_TOOL_OPTIONS")
        made["JAVA_TOOL_OPTIONS"] = _joined(earlier, *_java_proxy(address))
    preload = folder / "proxy.cjs"
    preload.write_text(PRELOAD)
    if " " not in str(preload):
        made["NODE_OPTIONS"] = _joined(before.get("NODE_OPTIONS"), f"--require={preload}")
    return made


def _with_earlier_bundles(before: Mapping[str, str], ours: bytes, folder: Path) -> Iterator[tuple[str, str]]:
    """A company's roots stay trusted: the file that a variable names, with our CA behind it."""
    copies: dict[bytes, Path] = {}
    for name in (*REPLACED_ROOTS, *ADDED_ROOTS):
        earlier = _certificates(before.get(name) or before.get(name.upper()) or "")
        if not earlier:
            continue
        path = copies.get(earlier)
        if path is None:
            path = copies[earlier] = folder / f"bundle-{len(copies) + 1}.pem"
            path.write_bytes(earlier.rstrip() + b"\n" + ours)
        yield name, str(path)


def _certificates(name: str) -> bytes:
    """Of a file, or of a folder of files as OpenSSL and requests take them; empty when there is none to read."""
    path = Path(name)
    try:
        if not name or not path.exists():
            return b""
        files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        if sum(one.stat().st_size for one in files) > MAX_BUNDLE_BYTES:
            return b""
        found = [data.rstrip() for one in files if _END in (data := one.read_bytes())]
    except OSError:
        return b""
    return b"\n".join(dict.fromkeys(found))


def _has_java(before: Mapping[str, str]) -> bool:
    return bool(before.get("JAVA_HOME")) or shutil.which("java", path=before.get("PATH", os.defpath)) is not None


def _java_trust(store: Path) -> tuple[str, ...]:
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
    )


def _java_proxy(address: ProxyAddress) -> tuple[str, ...]:
    names = (f"-D{scheme}.proxyHost={address.host} -D{scheme}.proxyPort={address.port}" for scheme in ("http", "https"))
    # Empty: Java leaves localhost out by itself, which is what people debug.
    return (*names, "-Dhttp.nonProxyHosts=")


def _trust_store(pem: bytes) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    certificates: dict[bytes, x509.Certificate] = {}
    for block in pem.split(_END):
        start = block.find(b"-----BEGIN CERTIFICATE-----")
        if start >= 0:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a root of the system with a negative serial number is not news
                    certificate = x509.load_pem_x509_certificate(block[start:] + _END + b"\n")
            except ValueError:
                continue  # one old root that cannot be read must not cost the others
            certificates[certificate.fingerprint(hashes.SHA256())] = certificate
    entries = [
        pkcs12.PKCS12Certificate(one, f"root-{number}".encode()) for number, one in enumerate(certificates.values())
    ]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(STORE_PASSWORD.encode()))


def _joined(earlier: str | None, *options: str) -> str:
    return " ".join(part for part in (earlier, *options) if part)


_VARIABLES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_SCHEMES = {"http": "http", "https": "https", "socks5": "socks5", "socks5h": "socks5h", "socks": "socks5"}
LOCAL = ("localhost", "127.0.0.0/8", "::1")
"""Never behind somebody else's proxy."""


class UpstreamProxySettings(NamedTuple):
    url: str
    bypass: tuple[str, ...]
    variable: str


def upstream_of(environment: Mapping[str, str]) -> UpstreamProxySettings | None:
    """None when there is none, or none that we can go through."""
    for variable in _VARIABLES:
        value = environment.get(variable, "").strip()
        if not value:
            continue
        url = value if "://" in value else f"http://{value}"
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme.lower() in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if is_usable:
            scheme = _SCHEMES[parts.scheme.lower()]
            named = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
            bypass = tuple(part.strip() for part in named.replace(" ", ",").split(",") if part.strip())
            return UpstreamProxySettings(
                f"{scheme}://{url.partition('://')[2].rstrip('/')}", (*bypass, *LOCAL), variable
            )
    return None
