"""What holds for any rule and any URL."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dari.proxy.rules.matchers import read_matcher
from dari.proxy.rules.rule import AllowRule, AnyRule, BlockRule, DelayRule
from dari.proxy.rules.rule_store import RuleStore
from dari.proxy.rules.site import Site
from tests.support.proxy_rules import book_of, local, remote, rewrite, set_of

labels = st.text("abxyz019-", min_size=1, max_size=5).map(lambda text: f"h{text}h")
hosts = st.lists(labels, min_size=1, max_size=3).map(".".join) | st.sampled_from(["[::1]", "127.0.0.1", "localhost"])
ports = st.sampled_from(["", "", ":80", ":443", ":8080"])
schemes = st.sampled_from(["http", "https"])
paths = st.text("/ab?=&.%", max_size=8).map(lambda text: "/" + text)
urls = st.tuples(schemes, hosts, ports, paths)
matchers = st.one_of(
    st.sampled_from(["", "*", "/", "/a", "h", "exam", "*.*", "https://", "http://*/a"]),
    urls.map(lambda url: f"{url[0]}://{url[1]}{url[2]}{url[3]}"),
    urls.map(lambda url: f"{url[1]}{url[2]}{url[3]}"),
    urls.map(lambda url: url[1]),
    st.text(max_size=10),
)
rules = st.one_of(
    st.builds(local, matchers, enabled=st.booleans(), method=st.sampled_from([None, "GET", "post"])),
    st.builds(remote, matchers, st.sampled_from(["https://b.com", "b", "http://c/d/"])),
    st.builds(rewrite, matchers, st.integers(100, 999), st.none() | st.integers(100, 999)),
    st.builds(lambda matcher, enabled: AllowRule(matcher=matcher, enabled=enabled), matchers, st.booleans()),
    st.builds(lambda matcher: BlockRule(matcher=matcher, matcher_kind="glob"), matchers),
    st.builds(lambda matcher: DelayRule(matcher=matcher, delay_ms=5), matchers),
)
books = st.lists(rules, max_size=6)


@given(urls)
def test_a_rule_matches_its_own_url_in_every_form(url: tuple[str, str, str, str]) -> None:
    scheme, host, port, path = url
    for matcher in (f"{scheme}://{host}{port}{path}", f"{host}{port}{path}", path):
        for rule in (BlockRule(matcher=matcher), BlockRule(matcher=matcher, matcher_kind="glob")):
            assert set_of(rule).decide("GET", scheme, host + port, path).block is not None


@given(urls)
def test_an_allow_rule_for_a_url_records_it_and_decrypts_its_host(url: tuple[str, str, str, str]) -> None:
    scheme, host, port, path = url
    for matcher in (f"{scheme}://{host}{port}{path}", f"{host}{port}{path}", host, host + port):
        assert set_of(AllowRule(matcher=matcher)).decide("GET", scheme, host + port, path).is_recorded
    assert set_of(AllowRule(matcher=f"https://{host}{path}")).decrypts(f"{host}:443").wanted


@given(books, urls)
def test_disabled_rules_never_act(given_rules: list[AnyRule], url: tuple[str, str, str, str]) -> None:
    scheme, host, port, path = url
    book = book_of(*given_rules)
    for rule in book.rules():
        book.update(rule.id, {"enabled": False})
    decision = book.current.decide("GET", scheme, host + port, path)
    assert decision.is_recorded and decision.rule_ids == () and decision.status_rewrites == ()
    assert not book.current.decrypts(f"{host}:443").wanted


@given(books, urls, st.sampled_from(["GET", "POST"]))
def test_the_filter_agrees_with_asking_every_rule(
    given_rules: list[AnyRule], url: tuple[str, str, str, str], method: str
) -> None:
    scheme, host, port, path = url
    book = book_of(*given_rules)
    decision = book.current.decide(method, scheme, host + port, path)

    def fits(rule: AnyRule) -> bool:
        matcher = read_matcher(rule.matcher, rule.matcher_kind, is_allow=isinstance(rule, AllowRule))
        condition = matcher.narrow(Site.of(scheme, host + port))
        wanted = rule.method is None or rule.method.upper() == method
        return rule.enabled and wanted and condition is not None and condition.holds(path)

    fitting = [rule for rule in book.rules() if fits(rule)]
    allows = [rule for rule in book.rules() if isinstance(rule, AllowRule) and rule.enabled]
    assert decision.is_recorded == (not allows or any(isinstance(rule, AllowRule) for rule in fitting))
    if decision.is_recorded:
        blocks = [rule.id for rule in fitting if isinstance(rule, BlockRule)]
        assert (decision.block.id if decision.block else None) == (blocks[0] if blocks else None)
        if not blocks:
            firsts = {kind: rule.id for rule in reversed(fitting) for kind in [rule.kind]}
            assert (decision.map_local.id if decision.map_local else None) == firsts.get("map_local")
            assert [rule.id for rule in decision.status_rewrites] == [
                rule.id for rule in fitting if rule.kind == "status_rewrite"
            ]


@given(books, urls, st.sampled_from(["GET", "POST"]), st.booleans())
def test_an_explanation_agrees_with_the_decision(
    given_rules: list[AnyRule], url: tuple[str, str, str, str], method: str, has_ca: bool
) -> None:
    scheme, host, port, path = url
    book = book_of(*given_rules)
    explanation = book.explain(f"{scheme}://{host}{port}{path}", method, has_ca=has_ca)
    authority = explanation.url.partition("://")[2].partition("/")[0]
    decision = book.current.decide(method, scheme, authority, path)
    told = {finding.id for report in explanation.kinds for finding in report.matched}
    acting = {*decision.rule_ids, *(rule.id for rule in decision.status_rewrites)}
    assert told == acting | ({decision.allowed_by} if decision.allowed_by else set())
    assert explanation.mapped_url == decision.mapped_url
    wanted = book.current.decrypts(f"{host}{port}" if port else f"{host}:443").wanted
    if scheme == "https":
        assert explanation.is_decrypted == (wanted and has_ca)
    shown = sum(len(r.matched) + len(r.others) + r.others_left_out for r in explanation.kinds)
    assert shown == len(given_rules)


@given(books)
def test_state_round_trips(given_rules: list[AnyRule]) -> None:
    book = book_of(*given_rules)
    new = RuleStore()
    assert new.load_state(book.dump_state()) == ()
    assert new.rules() == book.rules()
    assert new.dump_state() == book.dump_state()


@given(st.binary(max_size=60))
def test_loading_garbage_raises_nothing_but_invalid_input(data: bytes) -> None:
    from dari.errors import InvalidInput

    try:
        RuleStore().load_state(data)
    except InvalidInput:
        pass
