from __future__ import annotations

import pytest

from dari.proxy.query.filters import TrafficFilter
from dari.proxy.query.search import Sources
from dari.proxy.query.summary import percentile, summarize, template
from dari.text.redact import REVEALED
from tests.support.flows import SECRET, Hiding, flow, running, tunnel


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/users/42/posts?page=2", "/users/{id}/posts"),
        ("/orders/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/orders/{id}"),
        ("/blob/d41d8cd98f00b204e9800998ecf8427e", "/blob/{id}"),
        ("/v1/charges/ch_3MqZ8w2eZvKYlo2C", "/v1/charges/{id}"),
        ("/t/eyJhbGciOiJIUzI1NiJ9x7Qa1234", "/t/{id}"),
        ("/logs/2026-11-15", "/logs/{id}"),
        ("/api/v2/health-check", "/api/v2/health-check"),
        ("/static/main.css", "/static/main.css"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_what_changes_from_call_to_call_becomes_a_placeholder(target: str, expected: str) -> None:
    assert template(target) == expected


def test_flows_are_grouped_by_host_and_template_the_busiest_first() -> None:
    flows = [flow(number, f"http://a.test/users/{number}") for number in range(1, 8)]
    flows += [flow(10, "http://b.test/", status=500), flow(11, "http://b.test/", "POST", status=200)]
    made = summarize(Sources(flows, redactor=REVEALED), TrafficFilter())
    assert [(one.host, one.path, one.count) for one in made.groups] == [
        ("a.test", "/users/{id}", 7),
        ("b.test", "/", 2),
    ]
    assert made.flows == 9 and made.groups[1].error_rate == 0.5
    assert made.groups[1].statuses == {"2xx": 1, "5xx": 1} and made.groups[1].methods == {"GET": 1, "POST": 1}
    assert made.groups[1].last_id == 11 and made.groups[0].response_bytes == 7 * 11


def test_percentiles_are_values_that_occurred() -> None:
    flows = [flow(number, total_ms=float(number)) for number in range(1, 101)]
    (group,) = summarize(Sources(flows), TrafficFilter()).groups
    assert (group.p50_ms, group.p95_ms) == (50.0, 95.0)
    assert percentile([], 0.5) is None and percentile([7.0], 0.95) == 7.0


def test_running_requests_and_tunnels_count_without_a_duration() -> None:
    made = summarize(Sources([running(1), tunnel(2)]), TrafficFilter())
    assert {(one.host, one.path) for one in made.groups} == {("api.test", "/items"), ("secret.test:443", "")}
    assert all(one.p50_ms is None and one.statuses == {"none": 1} for one in made.groups)


def test_groups_beyond_the_limit_are_counted() -> None:
    made = summarize(
        Sources([flow(number, f"http://h{number}.test/") for number in range(1, 11)]), TrafficFilter(), groups=3
    )
    assert len(made.groups) == 3 and made.left_out_groups == 7 and made.left_out_flows == 7


def test_a_secret_in_the_path_is_hidden() -> None:
    made = summarize(Sources([flow(1, f"http://a.test/x/{SECRET}!")], redactor=Hiding()), TrafficFilter())
    assert made.groups[0].path == "/x/<redacted>!"
