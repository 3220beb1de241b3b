"""Who else may read or write a person's own file of profiles (design 001 §10)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import structs

from dari.bridge.profiles.profile import HttpSettings, Profile
from dari.bridge.profiles.reading import FileContents
from dari.bridge.profiles.secret import MARK, Secret, is_sensitive


def is_open_to_others(path: Path) -> bool:
    """Could another user put a command into the file? Then its content has to be trusted like a project's."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    return info.st_uid not in (os.geteuid(), 0) or bool(info.st_mode & stat.S_IWOTH)


def tell_of_readers(path: Path, contents: FileContents) -> FileContents:
    """The contents, with a problem if others may read keys that are written out in the file."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return contents
    if not mode & (stat.S_IRGRP | stat.S_IROTH):
        return contents
    open_ones = [profile.id for profile in contents.profiles if _holds_keys(profile)]
    if not open_ones:
        return contents
    told = f"{path}: others may read the keys of {', '.join(open_ones)} (chmod 600, or use ${{keyring:…}})"
    return structs.replace(contents, problems=(*contents.problems, told))


def _holds_keys(profile: Profile) -> bool:
    connection = profile.connection
    if isinstance(connection, HttpSettings):
        named = {**connection.headers, "token": connection.auth.token, "secret": connection.auth.client_secret}
    else:
        named = {**connection.env}
    return any(
        isinstance(value, Secret) and value.shown == MARK and is_sensitive(name) for name, value in named.items()
    )
