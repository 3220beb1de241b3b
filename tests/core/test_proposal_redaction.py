"""What a person is asked about is shown whole, but for secrets: nothing that a shell obeys is hidden as one."""

from __future__ import annotations

import pytest

from dari.core.proposal_redaction import redact_proposal
from dari.text.redact.patterns import MARK

KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"


@pytest.mark.parametrize(
    "command",
    [
        'PGPASSWORD="x; rm -rf ~ #" psql',
        "PGPASSWORD='$(rm -rf ~)' psql",
        "echo -----BEGIN PRIVATE KEY-----; rm -rf ~",
        "rm -rf -----BEGIN PRIVATE KEY rm -rf ~",
        "curl --password='`rm -rf ~`' https://example.com",
        'token="a\nrm -rf ~"',
        "Private-Lines: rm -rf ~ ; echo",
    ],
)
def test_a_command_that_is_worded_as_a_secret_is_shown(command: str) -> None:
    for value in (command, {"command": command}, {"steps": [{"run": command}]}, {"password": {"run": command}}):
        assert "rm -rf ~" in str(redact_proposal(value)), value


@pytest.mark.parametrize(
    "text",
    [
        "curl -H 'Authorization: Bearer abcdef0123456789abcdef' https://example.com",
        "PGPASSWORD=hunter22 psql",
        'PGPASSWORD="hunter22" psql',
        "https://ann:hunter22@example.com/",
        f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----",
    ],
)
def test_secrets_are_still_hidden(text: str) -> None:
    shown = str(redact_proposal({"command": text}))
    assert MARK in shown
    assert not any(each in shown for each in ("hunter22", "abcdef0123456789", KEY))


def test_values_of_secret_names_stay_hidden_and_what_has_none_is_the_very_object() -> None:
    assert redact_proposal({"password": "hunter22!", "n": 1}) == {"password": MARK, "n": 1}
    plain = {"command": "ls -l", "n": [1, 2, {"a": None}]}
    assert redact_proposal(plain) is plain


def test_a_text_that_says_redacted_itself_is_shown_as_it_is() -> None:
    shown = str(redact_proposal({"command": f"echo {MARK}; PGPASSWORD='; rm -rf ~' psql"}))
    assert "rm -rf ~" in shown
