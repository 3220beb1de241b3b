"""The official conformance suite passes, for our server and our client, in both protocol eras."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.run import complaints
from tests.conformance.serving import Upstream, everything_serving, gateway_serving
from tests.conformance.suite import REVISIONS, Leg, Report, expected_failures, run_everything, run_requirements

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("conformance"),
]


# To let go of a stream is for the one who holds it: a server behind us cannot ask for that.
NOT_RELAYED = {"server-sse-polling"}

LOST_IN_TRANSLATION = {
    # A question of the handshake era has no name; the suite expects its own.
    "input-required-result-basic-elicitation",
    # Three of them are three messages: the first to arrive may go out alone.
    "input-required-result-multiple-input-requests",
    # The session says once what clients of ours can be asked; the suite's one can be asked less.
    "input-required-result-capability-check",
}


@pytest.fixture(autouse=True)
def node() -> None:
    if os.environ.get("DARI_NO_NODE") != "1":
        return
    missing = "DARI_NO_NODE=1: THE CONFORMANCE SUITE DID NOT RUN, it needs node 22 or newer (./dev test installs it)"
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("leg", ["server", "client"])
def test_every_required_scenario_passes(leg: Leg, revision: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        serving = stack.enter_context(everything_serving(tmp_path / "server.log")) if leg == "server" else None
        report = run_requirements(leg, revision, tmp_path / "results", serving.url if serving else "")
    assert report.is_conformant, _told(report)
    assert serving is None or not serving.trouble(), serving.trouble()
    chosen = expected_failures(leg)
    failing = {scenario.name for scenario in report.unscored if not scenario.has_passed}
    assert failing <= chosen, _told(report)
    assert {scenario.name for scenario in report.unscored} & chosen <= failing, "expected-failures.yml is out of date"


def test_the_server_fails_nothing_but_what_was_chosen(tmp_path: Path) -> None:
    with everything_serving(tmp_path / "server.log") as serving:
        done = run_everything("server", tmp_path / "results", serving.url)
    assert done.returncode == 0, done.stdout[-5000:]
    assert not serving.trouble(), serving.trouble()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("upstream", ["stdio", "http"])
def test_every_required_scenario_passes_through_the_gateway(upstream: Upstream, revision: str, tmp_path: Path) -> None:
    with gateway_serving(tmp_path / "gateway", upstream) as serving:
        report = run_requirements("server", revision, tmp_path / "results", serving.url)
    assert report.is_conformant, _told(report)
    assert not serving.trouble(), serving.trouble()
    failing = {scenario.name for scenario in report.unscored if not scenario.has_passed}
    assert failing <= expected_failures("server") | NOT_RELAYED, _told(report)


def test_for_stateless_clients_a_server_of_the_handshake_era_is_translated(tmp_path: Path) -> None:
    with gateway_serving(tmp_path / "gateway", "http", protocol="legacy", isolation="per-client") as serving:
        report = run_requirements("server", "2026-07-28", tmp_path / "results", serving.url)
    assert {s.name for s in report.required if not s.has_passed} <= LOST_IN_TRANSLATION, _told(report)
    assert not serving.trouble(), serving.trouble()


def _told(report: Report) -> str:
    """The scenarios that failed and why; the suite's own last words when none did and it is unhappy all the same."""
    lines = [line for scenario in report.scenarios if not scenario.has_passed for line in complaints(scenario)]
    head = f"{report.leg} {report.revision}, exit code {report.exit_code}"
    return "\n".join([head, *(lines or [report.output[-5000:]])])
