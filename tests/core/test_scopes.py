"""A call passes only with the scope it needs; no scope implies another."""

from __future__ import annotations

import pytest

from dari.core.scopes import (
    ADMIN,
    ALL_SCOPES,
    CONTROL,
    MCP_GRANT,
    READ,
    RULES_WRITE,
    Grant,
    InsufficientScope,
    require_scope,
)
from dari.errors import Denied


@pytest.mark.parametrize("scope", sorted(ALL_SCOPES))
def test_a_scope_allows_itself_and_nothing_else(scope: str) -> None:
    grant = Grant("someone", frozenset({scope}))
    require_scope(scope, grant)
    for other in ALL_SCOPES - {scope}:
        with pytest.raises(InsufficientScope):
            require_scope(other, grant)


def test_an_mcp_client_may_do_everything_but_administer() -> None:
    for scope in (READ, RULES_WRITE, CONTROL):
        require_scope(scope, MCP_GRANT)
    with pytest.raises(InsufficientScope):
        require_scope(ADMIN, MCP_GRANT)


def test_the_refusal_is_worded_as_the_table_says_and_the_hint_names_what_is_missing() -> None:
    with pytest.raises(InsufficientScope) as refused:
        require_scope("admin", Grant("mcp", frozenset({"read", "control"})))
    assert isinstance(refused.value, Denied)
    assert (refused.value.code, refused.value.name) == (-32001, "insufficient_scope")
    assert refused.value.wire_message == "Forbidden: insufficient scope"
    assert refused.value.hint == "this call needs scope 'admin'; principal 'mcp' holds: control, read"


def test_a_principal_without_scopes_is_told_so() -> None:
    with pytest.raises(InsufficientScope) as refused:
        require_scope("read", Grant("nobody", frozenset()))
    assert refused.value.hint.endswith("holds: none")
