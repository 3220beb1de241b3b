"""The servers that need no profile: who may use them, and what wins over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dari.bridge.config.built_in import CODE_TOOLS, is_code_tools
from dari.bridge.config.locations import ClientEnvironment
from dari.bridge.config.profile import StdioSettings
from dari.bridge.config.service import ConfigService
from dari.bridge.config.trust import TrustStore
from dari.errors import InvalidInput, NotFound


def service(home: Path) -> ConfigService:
    (home / "work").mkdir(exist_ok=True)
    return ConfigService(ClientEnvironment(home, home / "work", {}), TrustStore(home / "trust.json"))


def test_the_code_tools_can_be_named_without_any_file(tmp_path: Path) -> None:
    catalog = service(tmp_path).load()
    entry = catalog.select(CODE_TOOLS)
    assert entry.profile is not None and isinstance(entry.profile.connection, StdioSettings)
    assert entry.profile.connection.args[-1] == "serve"
    assert entry.profile.connection.cwd == str(tmp_path / "work")
    assert is_code_tools(entry.profile) and str(entry.source) == "built in"


def test_they_are_neither_mounted_nor_the_default(tmp_path: Path) -> None:
    catalog = service(tmp_path).load()
    assert catalog.listed == () and catalog.ready() == () and catalog.default_id is None
    with pytest.raises(InvalidInput, match="none is the default"):
        catalog.select(None)


def test_a_profile_of_the_same_name_wins(tmp_path: Path) -> None:
    book = service(tmp_path)
    book.add(CODE_TOOLS, {"command": "other", "args": ["serve"]})
    catalog = book.load()
    assert [one.id for one in catalog.named] == [CODE_TOOLS]
    profile = catalog.find(CODE_TOOLS).profile
    assert profile is not None and profile.address == "other" and not is_code_tools(profile)


def test_it_is_not_changed_as_if_a_file_named_it(tmp_path: Path) -> None:
    for change in (service(tmp_path).disable, service(tmp_path).remove):
        with pytest.raises(InvalidInput, match="built in"):
            change(CODE_TOOLS)


def test_an_unknown_name_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as unknown:
        service(tmp_path).load().find("nothing-like-it")
    assert CODE_TOOLS in unknown.value.hint and "dari remote add" in unknown.value.hint
