"""Nothing an agent reads holds a secret, and nothing else is lost."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dari.text.redact import (
    MARK,
    MAX_CHARS,
    REVEALED,
    Redactor,
    documents,
    is_secret_name,
    redact_body,
    redact_headers,
    redact_text,
    redact_url,
)

SECRET = "s3cr3tVALUE42"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "X-Auth-Token"),
        *("x-amz-security-token", "X-CSRF-Token", "Ocp-Apim-Subscription-Key", "x-goog-api-key", "X-Hub-Signature"),
    ],
)
def test_secret_headers_lose_their_whole_value(name: str) -> None:
    shown = redact_headers([(name.encode(), f"Bearer {SECRET}".encode()), (b"Accept", b"*/*")])
    assert shown == ([(name, MARK), ("Accept", "*/*")], 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content-Type", "application/json; charset=utf-8"),
        ("WWW-Authenticate", 'Bearer realm="api"'),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("User-Agent", "curl/8.0"),
        ("ETag", 'W/"5f-abc"'),
        ("Location", "https://example.com/a?page=2"),
    ],
)
def test_other_headers_stay_as_they_are(name: str, value: str) -> None:
    assert redact_headers([(name.encode(), value.encode())]) == ([(name, value)], 0)


def test_a_secret_inside_another_header_is_found() -> None:
    shown = redact_headers([(b"Location", f"https://a.com/cb?code={SECRET}&x=1".encode()), (b"X-Debug", JWT.encode())])
    assert shown == ([("Location", f"https://a.com/cb?code={MARK}&x=1"), ("X-Debug", MARK)], 2)


def test_header_bytes_that_are_no_text_do_not_raise() -> None:
    assert redact_headers([(b"\xff", b"\xfe\x00")]).found == 0


@pytest.mark.parametrize(
    "name",
    [
        *("token", "access_token", "api_key", "apikey", "key", "password", "client_secret", "signature", "code", "sig"),
        *("X-Amz-Signature", "X-Amz-Security-Token", "api%5Fkey", "session", "auth"),
    ],
)
def test_secret_query_parameters_go_and_their_names_stay(name: str) -> None:
    url = f"https://example.com/p?a=1&{name}={SECRET}&b=2"
    assert redact_url(url) == (f"https://example.com/p?a=1&{name}={MARK}&b=2", 1)


def test_userinfo_and_fragment_hold_secrets_too() -> None:
    assert redact_url(f"https://me:{SECRET}@example.com/#access_token={SECRET}&x=1") == (
        f"https://{MARK}@example.com/#access_token={MARK}&x=1",
        2,
    )


@pytest.mark.parametrize(
    "url", ["https://a.com/tokens?page_token=abc&q=key", "https://a.com/?state=open&sort=key", "/x"]
)
def test_everyday_urls_stay(url: str) -> None:
    assert redact_url(url) == (url, 0)


def test_json_secrets_go_by_key_at_any_depth_and_the_rest_stays_byte_for_byte() -> None:
    body = (
        '{ "user":"ann",\n  "accessToken" : "' + SECRET + '", "n": {"client_secret":"a\\"b' + SECRET + '", "x":[1,2]},'
        ' "password": 12345, "refresh-tokens": ["' + SECRET + '"], "auth": {"k": "}' + SECRET + '"} }'
    )
    text, found = redact_body(body.encode(), "application/json")
    assert found == 5
    assert SECRET not in text and "12345" not in text
    assert text.startswith('{ "user":"ann",\n  "accessToken" : "<redacted>"')
    assert json.loads(text)["n"]["x"] == [1, 2]


@pytest.mark.parametrize(
    "body",
    [
        '{"max_tokens": 100, "usage": {"total_tokens": 5}}',
        '{"code": 404, "key": "name", "state": "open"}',
        '{"has_password": true, "token": null, "secret": ""}',
        '{"nextPageToken": "abc", "token_type": "bearer"}',
        '{"passenger": "Ann", "author": "Bob", "tokenizer": "bpe"}',
        "",
        "plain words about a token and a password",
    ],
)
def test_harmless_json_stays(body: str) -> None:
    assert redact_body(body) == (body, 0)


def test_json_inside_a_json_string_is_read_too() -> None:
    text, found = redact_text(json.dumps({"log": json.dumps({"token": SECRET, "a": 1})}))
    assert found == 1 and SECRET not in text
    assert json.loads(json.loads(text)["log"]) == {"token": MARK, "a": 1}


@pytest.mark.parametrize("cut", range(1, len(SECRET) + 1))
def test_a_sample_that_ends_inside_a_secret_shows_nothing_of_it(cut: int) -> None:
    text, found = redact_text('{"a": 1, "password": "' + SECRET[:cut])
    assert found == 1 and text.endswith(f'"{MARK}"')


def test_form_bodies_go_by_name() -> None:
    body = f"user=ann&password={SECRET};,%20'x y&code={SECRET}&page=2"
    assert redact_body(body, "application/x-www-form-urlencoded; charset=utf-8") == (
        f"user=ann&password={MARK}&code={MARK}&page=2",
        2,
    )


@pytest.mark.parametrize(
    "text",
    [
        f"password: {SECRET}",
        f"Cookie: a={SECRET}; b={SECRET}",
        f"login?user=x&token={SECRET}",
        f"api_key='{SECRET}'",
        f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{SECRET}\r\n--b--',
        f"<Password type='x'>{SECRET}</Password>",
        f"  - client_secret: {SECRET}\n    x: 1",
    ],
)
def test_other_texts_are_read_by_name(text: str) -> None:
    shown, found = redact_text(text)
    assert SECRET not in shown and found == 1


@pytest.mark.parametrize(
    "secret",
    [
        JWT,
        "Bearer abcdef123456",
        "bearer AbCdEfGhIjKlMnOpQrStUv",
        "Basic dXNlcjpwYXNzd29yZDE=",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 12,
        "glpat-" + "a1B2" * 5,
        "xoxb-123456789012-abcdef",
        "sk-proj-" + "a1B2" * 10,
        "sk_live_" + "a1B2" * 6,
        "AIza" + "a1B2c" * 7,
        "npm_" + "a1B2" * 9,
        "hf_" + "a1B2" * 9,
        "dtk_" + "a1B2" * 10 + "a-B",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
    ],
)
def test_secrets_are_known_by_their_shape_wherever_they_stand(secret: str) -> None:
    for text in (secret, f'{{"note": "see {secret}"}}', f"log line {secret}"):
        shown, found = redact_text(text)
        assert found >= 1 and secret not in shown and secret[-6:] not in shown
    assert redact_text(f'{{"a": "{secret}"}}').text.startswith('{"a": "')


def test_a_key_name_is_judged_without_case_dashes_and_plural() -> None:
    for name in ("API-Key", "apiKeys", "API_KEY_2", "x-refreshToken", "userPassword", "AWS_SECRET_ACCESS_KEY"):
        assert is_secret_name(name)
    for name in ("monkey", "keyboard", "tokenize", "secretary", "compass", "design", "code"):
        assert not is_secret_name(name)


def test_more_than_the_limit_is_cut_off_and_said() -> None:
    text, _ = redact_text("x" * (MAX_CHARS + 10))
    assert len(text) == MAX_CHARS and text.endswith("…(10 more characters not shown)")
    assert redact_text(text).text == text


def test_a_secret_across_the_limit_leaves_no_piece() -> None:
    text, _ = redact_text("x" * (MAX_CHARS - 47) + " dop_v1_" + "0af" * 20)
    assert "dop" not in text


def test_a_secret_laid_bare_by_another_goes_too() -> None:
    text, _ = redact_text("AIza" + "a" * 35 + JWT)
    assert "eyJ" not in text and "AIza" not in text


@pytest.mark.parametrize(
    "unit",
    [
        *("a", '"', "\\", '\\"', '"token":', '"token":[{', "token=", "<a ", "://", "eyJ", "-----BEGIN PRIVATE KEY "),
        *('name="', 'name="token"\n', "a: ", "bearer ", "basic aaaaaaaa", "token:\n", "ya29.", '{"token":"a"},', " "),
    ],
)
def test_no_text_costs_more_than_its_length(unit: str) -> None:
    started = time.process_time()
    redact_text("token" + unit * (MAX_CHARS // len(unit)))
    assert time.process_time() - started < 5  # the quadratic versions took minutes


texts = st.lists(
    st.sampled_from(
        [
            *(
                '"',
                "\\",
                '"token"',
                ":",
                "=",
                "&",
                "?",
                "password",
                SECRET,
                JWT,
                "Bearer ",
                "abc123456",
                "{",
                "}",
                "[",
                "]",
            ),
            *(",", "\n", " ", "://", "@", "<", ">", MARK, "AKIAIOSFODNN7EXAMPLE", "sk-", "-----BEGIN PRIVATE KEY-----"),
            *('name="', "cookie: ", "1", "\r\n\r\n", "'", "#", ";", "%", "ghp_", "+", "/", "eyJ", "."),
        ]
    )
    | st.text(max_size=3),
    max_size=25,
).map("".join)


@given(texts)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    for redact in (redact_text, redact_url, lambda body: redact_body(body, "application/x-www-form-urlencoded")):
        shown, _ = redact(text)
        assert redact(shown) == (shown, 0)


@given(st.binary(max_size=200))
def test_garbage_never_raises(data: bytes) -> None:
    redact_body(data, "application/json")
    redact_body(data, "application/x-www-form-urlencoded")
    redact_headers([(data, data)])
    redact_url(data.decode("latin-1"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abn", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.sampled_from(["token", "apiKey", "user_password"]), st.sampled_from([None, 1]))
def test_a_json_document_stays_one_and_loses_only_the_secret(value: object, key: str, indent: int | None) -> None:
    document = {"before": value, key: {"deep": [SECRET]}, "list": [{key: SECRET}], "after": value}
    text, found = redact_text(json.dumps(document, indent=indent))
    assert json.loads(text) == {"before": value, key: MARK, "list": [{key: MARK}], "after": value}
    assert found == 2


def test_a_redactor_keeps_bytes_it_need_not_touch_and_counts() -> None:
    redactor = Redactor()
    headers = [(b"X-Raw", b"\xff\xfe"), (b"Cookie", b"a=1"), (b"Accept", b"*/*")]
    assert redactor.headers(headers) == [(b"X-Raw", b"\xff\xfe"), (b"Cookie", MARK.encode()), (b"Accept", b"*/*")]
    assert redactor.headers(headers[::2]) is not None
    assert redactor.url("https://a/?token=x") == f"https://a/?token={MARK}"
    assert redactor.body("code=1", "application/x-www-form-urlencoded") == f"code={MARK}"
    assert redactor.found == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"password","value":' * 2000,
        '{"name":"password","value":[' * 2000 + "]}" * 2000,
        '{"tokens":' * 2000 + "1" + "}" * 2000,
        '{"tokens":' * 2000,
        '"{"name":"password","value":{' * 2000,
    ],
)
def test_brackets_in_brackets_are_met_a_few_times_and_not_once_for_each_around_them(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = 0

    class Counted:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def __getattr__(self, name: str) -> Any:
            return getattr(self._pattern, name)

        def finditer(self, *given: Any) -> Iterator[re.Match[str]]:
            nonlocal met
            for found in self._pattern.finditer(*given):
                met += 1
                yield found

    real = documents.compiled
    monkeypatch.setattr(documents, "compiled", lambda pattern: Counted(real(pattern)))
    documents.hide_json(text)
    assert met <= 25 * len(text)


def test_a_whole_body_is_searched_and_shown_beyond_the_usual_length() -> None:
    text = "x y\n" * (MAX_CHARS // 2) + "password: open-sesame\nend"
    shown = Redactor().whole_body(text, "text/plain")
    assert shown.endswith("password: <redacted>\nend") and len(shown) > 2 * MAX_CHARS
    assert REVEALED.whole_body(text, "text/plain") == text


def test_a_token_in_a_subprotocol_of_kubernetes_is_hidden() -> None:
    value = b"base64url.bearer.authorization.k8s.io.ZXlKaGJHY2lPaUpTVXpJ, base64.binary.k8s.io"
    shown = redact_headers([(b"Sec-WebSocket-Protocol", value)])
    assert shown.headers[0][1] == "base64url.bearer.authorization.k8s.io.<redacted>, base64.binary.k8s.io"
