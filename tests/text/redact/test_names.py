"""A name is judged by the words in it: every way to spell a secret, and nothing that only looks like one."""

from __future__ import annotations

import re

import pytest

from dari.text.redact import MARK, is_secret_name, redact_headers, redact_text, redact_url
from dari.text.redact.names import Sensitivity, sensitivity

SECRET = tuple(
    re.split(
        r"\s+",
        "password password_confirmation passwd pwd X-Auth Authentication Authorization Proxy-Authorization PHPSESSID "
        "JSESSIONID ASP.NET_SessionId connect.sid otp_code otp pin cvv cvc card_number cardNumber cc-number "
        "csrf_token _csrf XSRF-TOKEN csrfmiddlewaretoken bearer jwt signature private_key apiKey x-api-key api_key2 "
        "accessToken userPassword PGPASSWORD MYSQL_PWD DB_PASS user[password] user%5Bpassword%5D client_secret "
        "AWS_SECRET_ACCESS_KEY session_id sessionToken 비밀번호 사용자비밀번호 카드번호 contraseña recovery_key "
        "id_token refreshToken auth_code confirmPassword credentials X-Vault-Token sshKey encryption_key "
        "connectionString ASPSESSIONIDQQAB cftoken remember_token authToken2 set-cookie cookie ssn security_code cvv2 "
        "access_key_id mfa_code SAMLResponse admin_pw stripe-signature X-Hub-Signature-256 kennwort пароль "
        "パスワード 密码 X-Amz-Security-Token",
    )
)
HARMLESS = tuple(
    re.split(
        r"\s+",
        "monkey keyboard author authority authors tokenizer token_type token_count nextPageToken page_token "
        "continuation_token content-length etag commit_sha trace_id traceparent X-Request-Id id user_id name keywords "
        "passenger compass design secretary tokenize pinned spinner opinion cardinal discard cardholder "
        "session_timeout authenticated is_authenticated WWW-Authenticate public_key primary_key cache_key sort_key "
        "donkey turkey author_name cookiecutter tokens_used password_policy password_changed_at auth_type auth_url "
        "signature_algorithm grant_type client_id pid pipeline assignee passing bypass basic account_id Host "
        "User-Agent Sec-WebSocket-Key message_sid",
    )
)


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_word_anywhere_in_a_name_hides_its_value(name: str) -> None:
    assert is_secret_name(name)
    assert redact_headers([(b"X", b"y")]).found == 0
    for text in (f'{{"{name}": "plum"}}', f'[{{"value": "plum", "x": 1, "name": "{name}"}}]'):
        assert "plum" not in redact_text(text).text
    assert "plum" not in redact_url(f"https://a.test/?{name}=plum&b=1").text


@pytest.mark.parametrize("name", HARMLESS)
def test_a_word_that_only_contains_a_secret_word_stays_readable(name: str) -> None:
    assert sensitivity(name) is Sensitivity.HARMLESS
    text = f'{{"{name}": "plum"}}'
    assert redact_text(text) == (text, 0)


STAY = [
    "Content-Length: 1234",
    'ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "X-Request-Id: 123e4567-e89b-12d3-a456-426614174000",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    '{"id": "123e4567-e89b-12d3-a456-426614174000", "sha": "9fceb02d0ae598e95dc970b74767f19372d61af8"}',
    '{"max_tokens": 4096, "usage": {"prompt_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 0}}}',
    '{"tokens": {"input": 12, "output": 34}}',
    '{"nextPageToken": "CAUQAA", "page_token": "abc"}',
    '{"code": "ERR_INVALID_ARG_TYPE", "state": "open", "key": "name", "status_code": 404}',
    '{"pass": 12, "fail": 0, "pass_rate": 0.9}',
    '{"properties": {"password": {"type": "string", "minLength": 8}}, "required": ["password", "email"]}',
    '{"timestamp": 1790000000123, "order": 4111111111111112, "phone": "010-1234-5678"}',
    "Access-Control-Allow-Credentials: true",
    'WWW-Authenticate: Bearer realm="api", error="invalid_token"',
    "x-ratelimit-remaining-tokens: 39999",
    "SyntaxError: Unexpected token } in JSON at position 5",
    "error: invalid token: expected identifier",
    "use --token to sign in, or --password when asked",
    "https://example.com/tokens/reset-password?state=open&sort=key&page=2",
    "https://api.github.com/repos/a/b/commits/9fceb02d0ae598e95dc970b74767f19372d61af8",
    "npm ERR! code ELIFECYCLE",
    "the author of keyboard shortcuts pinned a session about tokenizers",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "2026-11-17T03:06:30.123456Z 10.0.0.1:8080 -> 10.0.0.2:443",
    "<author>Ann</author><keywords>monkey, donkey</keywords>",
]


@pytest.mark.parametrize("text", STAY)
def test_everyday_values_stay_byte_for_byte(text: str) -> None:
    assert redact_text(text) == (text, 0)


@pytest.mark.parametrize(
    "text",
    [
        '{"card": 4111111111111111}',
        "paid with 5500-0055-5555-5559 today",
        '{"session": "a8f3k2m9x7"}',
        '{"state": "xyzABC123opaque"}',
        '{"code": "SplxlOBeZQQYbYS6WxSbIA"}',
        "https://app.test/cb?state=af0ifjsldkj7&code=SplxlOBe",
        "curl -u ann:plum https://a.test",
        "mysql --password plum -h db",
        '["run", "--api-key", "plum"]',
        "curl -H 'X-Auth: plum' https://a.test",
        "<input type='password' name='p' value='plum'>",
        '<param value="plum" name="password"/>',
        "<key>password</key><string>plum</string>",
        "<password><![CDATA[plum]]></password>",
        "{'password': 'plum'}",
        'login(password:"plum")',
        r'{"query": "mutation{login(password:\"plum\")}"}',
        "data=%7B%22password%22%3A%22plum%22%7D&x=1",
        "next=https%3A%2F%2Fa.test%2Fcb%3Faccess_token%3Dplum",
        r'{"\ube44\ubc00\ubc88\ud638": "plum"}',
        '[["Cookie", "plum"], ["Accept", "*/*"]]',
        r'{"url": "https:\/\/ann:plum@db.test\/x"}',
        "900101-1234568",
    ],
)
def test_secrets_in_unusual_clothes_are_found(text: str) -> None:
    shown = redact_text(text)
    assert MARK in shown.text and "plum" not in shown.text and shown.found
    assert redact_text(shown.text) == (shown.text, 0)
