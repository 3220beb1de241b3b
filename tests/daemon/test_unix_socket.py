from __future__ import annotations

from pathlib import Path

import pytest

from dari.daemon.unix_socket import MAX_SOCKET_PATH_BYTES, socket_address
from dari.errors import InvalidInput


def test_a_socket_path_is_measured_in_bytes_and_the_error_says_what_to_do() -> None:
    longest = Path("/" + "x" * (MAX_SOCKET_PATH_BYTES - 1))
    assert socket_address(longest) == str(longest)
    with pytest.raises(InvalidInput) as refused:
        socket_address(Path(f"{longest}y"))
    assert str(MAX_SOCKET_PATH_BYTES + 1) in refused.value.message
    assert "DARI_HOME" in refused.value.hint
    with pytest.raises(InvalidInput):
        socket_address(Path("/" + "다" * 40))
