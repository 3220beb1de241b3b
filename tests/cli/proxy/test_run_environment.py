"""`dari proxy run` where people work: company roots and proxies, Java, Node, a taken port, silence explained."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from dari.cli.proxy.child import LOCAL, ProxyAddress, joined_environment, upstream_of
from dari.cli.proxy.run import likely_reasons
from dari.proxy.ca import CertificateAuthority
from dari.proxy.client_environment import ADDED_ROOTS, REPLACED_ROOTS, variables
from tests.support.origins.origin import Origin, answering
from tests.support.proxy_command import JSON, JSON_BODY, THEIRS, Shell, serving, trusting_origins

ADDRESS = ProxyAddress("127.0.0.1", 8888)
PRINT = (
    "import json, os; "
    "print(json.dumps({k: [v, open(v).read() if os.path.isfile(v) else ''] for k, v in os.environ.items()}))"
)
JAVA = """
import java.net.URI;
import java.net.http.*;
public class Get {
  public static void main(String[] a) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(a[0])).build();
    System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
"""
NODE = """
const url = process.argv[1];
const get = (m) => new Promise((ok, no) => m.get(url, (r) => {
  let text = ''; r.on('data', (d) => text += d); r.on('end', () => ok(text));
}).on('error', no));
(async () => {
  const one = await get(require(url.startsWith('https') ? 'https' : 'http'));
  const two = await (await fetch(url)).text();
  console.log(JSON.stringify([one, two]));
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
"""


def pem(name: str) -> str:
    return CertificateAuthority.generate(name).pem.decode()


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    path = tmp_path / "ours.pem"
    path.write_text(pem("Ours"))
    return path


@pytest.mark.parametrize("name", [*REPLACED_ROOTS, *ADDED_ROOTS])
def test_a_bundle_that_is_set_keeps_its_certificates_and_gains_ours(name: str, tmp_path: Path, ours: Path) -> None:
    company = tmp_path / "company.pem"
    company.write_text(pem("Company") + pem("Other"))
    given = variables("127.0.0.1:8888", str(ours), str(ours))
    made = joined_environment(given, str(ours), ADDRESS, {name: str(company), "PATH": ""}, tmp_path)
    text = Path(made[name]).read_text()
    assert company.read_text().strip() in text and ours.read_text().strip() in text
    assert made[name] != str(company) and company.read_text().count("BEGIN") == 2
    others = {one for one in (*REPLACED_ROOTS, *ADDED_ROOTS) if one != name}
    assert {made[one] for one in others} == {str(ours)}


def test_a_folder_of_roots_is_read_and_a_missing_file_is_replaced(tmp_path: Path, ours: Path) -> None:
    folder = tmp_path / "roots"
    folder.mkdir()
    (folder / "a.pem").write_text(pem("A"))
    (folder / "README").write_text("no certificate")
    before = {"REQUESTS_CA_BUNDLE": str(folder), "CURL_CA_BUNDLE": str(tmp_path / "missing"), "PATH": ""}
    made = joined_environment(variables("127.0.0.1:1", str(ours), str(ours)), str(ours), ADDRESS, before, tmp_path)
    assert Path(made["REQUESTS_CA_BUNDLE"]).read_text().count("BEGIN") == 2
    assert made["CURL_CA_BUNDLE"] == str(ours)


def test_a_root_of_the_system_with_a_negative_serial_number_warns_nobody(tmp_path: Path, ours: Path) -> None:
    der = bytearray(ssl.PEM_cert_to_DER_cert(ours.read_text()))
    serial = der.index(b"\xa0\x03\x02\x01\x02\x02") + 7  # after the version: tag and length of the serial number
    der[serial] |= 0x80
    roots = tmp_path / "roots.pem"
    roots.write_text(ssl.DER_cert_to_PEM_cert(bytes(der)))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    before = {"SSL_CERT_FILE": str(roots), "PATH": str(java.parent)}
    made = joined_environment(variables("127.0.0.1:1", str(ours), str(ours)), str(ours), ADDRESS, before, tmp_path)
    assert "trustStore=" in made["JAVA_TOOL_OPTIONS"] and (tmp_path / "trust.p12").stat().st_size > 0


def test_options_that_are_set_stay(tmp_path: Path, ours: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    before = {"NODE_OPTIONS": "--max-old-space-size=99", "JAVA_TOOL_OPTIONS": "-Xmx1g", "PATH": str(java.parent)}
    made = joined_environment(variables("127.0.0.1:1", str(ours), str(ours)), str(ours), ADDRESS, before, tmp_path)
    assert made["NODE_OPTIONS"].startswith("--max-old-space-size=99 --require=")
    assert made["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -Djavax.net.ssl.trustStore=")
    assert "-Dhttps.proxyPort=8888" in made["JAVA_TOOL_OPTIONS"]
    without = joined_environment(variables("127.0.0.1:1", None), None, ADDRESS, before, tmp_path)
    assert "trustStore" not in without["JAVA_TOOL_OPTIONS"] and "-Dhttp.proxyHost=" in without["JAVA_TOOL_OPTIONS"]


@pytest.mark.parametrize(
    ("environment", "url", "variable"),
    [
        ({"HTTPS_PROXY": "http://p.test:3128"}, "http://p.test:3128", "HTTPS_PROXY"),
        ({"http_proxy": "p.test:3128"}, "http://p.test:3128", "http_proxy"),
        ({"ALL_PROXY": "socks5h://me:pw@p.test:1080/"}, "socks5h://me:pw@p.test:1080", "ALL_PROXY"),
        ({"HTTP_PROXY": "https://p.test:443", "https_proxy": "socks5://s.test"}, "socks5://s.test", "https_proxy"),
        ({"HTTPS_PROXY": "ftp://x", "ALL_PROXY": "socks://s.test:9"}, "socks5://s.test:9", "ALL_PROXY"),
    ],
)
def test_the_proxy_of_the_environment_is_found(environment: dict[str, str], url: str, variable: str) -> None:
    found = upstream_of({**environment, "NO_PROXY": ".corp.test, 10.0.0.0/8"})
    assert found is not None
    assert (found.url, found.variable, found.bypass) == (url, variable, (".corp.test", "10.0.0.0/8", *LOCAL))


@pytest.mark.parametrize("environment", [{}, {"HTTPS_PROXY": ""}, {"HTTPS_PROXY": "http://"}, {"ALL_PROXY": "x://y"}])
def test_no_proxy_or_none_that_can_be_used_is_none(environment: dict[str, str]) -> None:
    assert upstream_of(environment) is None


def test_the_proxy_of_the_environment_becomes_the_upstream_for_the_run(
    shell: Shell, site: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.asleep()
    with serving(answering(JSON)) as middle:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{middle.port}")
        code = "import urllib.request as u; print(u.urlopen('http://company.test/x').read().decode())"
        said = shell("run", "--", sys.executable, "-c", code)
        assert said.out.strip() == JSON_BODY.decode() and "1 request," in said.err
        assert f"through http://127.0.0.1:{middle.port} (http_proxy)" in said.err
        assert middle.requests[0].head.startswith(b"GET http://company.test/x ")
        local = f"import urllib.request as u; print(u.urlopen({site.url('/l')!r}).read().decode())"
        assert JSON_BODY.decode() in shell("run", "--", sys.executable, "-c", local).out
        assert len(middle.requests) == 1
    config = json.loads((shell.place.state_dir / "config.json").read_text())
    assert config["upstream"]["proxy"] is None and config["upstream"]["bypass"] == []


def test_a_port_that_is_taken_gives_way_to_the_next_and_is_said(shell: Shell, site: Origin) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        shell("set", "listen", f"127.0.0.1:{port}")
        shell("stop")
        said = shell("run", "--", sys.executable, "-c", f"import urllib.request as u; u.urlopen({site.url('/')!r})")
        assert f"127.0.0.1:{port} is taken; the proxy listens on 127.0.0.1:" in said.err and "1 request," in said.err
        assert shell.json("config")["listen_addr"] == f"127.0.0.1:{port}"


def test_no_requests_come_with_the_likely_reason(shell: Shell) -> None:
    shell.asleep()
    said = shell("run", "--", sys.executable, "-c", "raise SystemExit(3)", code=3)
    assert "No requests" in said.err and "ended with 3" in said.err and "HTTPS_PROXY" in said.err
    assert "Likely reasons" not in shell("run", "-q", "--", "true").err
    assert next(likely_reasons(["ssh", "x"], 0, 0)).startswith("ssh does not speak HTTP")
    assert "Docker daemon" in next(likely_reasons(["docker", "pull"], 0, 0))
    assert "2 requests of other processes" in next(likely_reasons(["make"], 0, 2))
    assert "Go program" in next(likely_reasons(["go", "test"], 0, 0))


def node() -> str:
    found = os.environ.get("DARI_NODE") or shutil.which("node")
    if found is None:
        pytest.skip("no node")
    return found


@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_node_goes_through_with_and_without_its_own_support(shell: Shell, scheme: str, native: str) -> None:
    trusting_origins(shell)
    shell.asleep()
    with serving(answering(JSON), THEIRS.context_for("localhost") if scheme == "https" else None) as site:
        url = f"{scheme}://localhost:{site.port}/node"
        command = ("env", f"NODE_USE_ENV_PROXY={native}", node(), "-e", NODE, url)
        said = shell("run", "--", *command)
    assert json.loads(said.out) == [JSON_BODY.decode()] * 2, said.err
    assert "2 requests," in said.err and said.err.count(url) == 2


def test_java_trusts_us_and_goes_through(shell: Shell, tmp_path: Path) -> None:
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("no JDK")
    (tmp_path / "Get.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(tmp_path), str(tmp_path / "Get.java")], check=True, timeout=120)
    trusting_origins(shell)
    shell.asleep()
    with serving(answering(JSON), THEIRS.context_for("localhost")) as site:
        url = f"https://localhost:{site.port}/java"
        said = shell("run", "--", "java", "-cp", str(tmp_path), "Get", url)
    assert said.out == JSON_BODY.decode() and url in said.err
