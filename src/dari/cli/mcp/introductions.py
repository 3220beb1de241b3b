"""The hub's last answers to `initialize` and `server/discover`, for a start before the hub runs.

One file for each release, set of options, folder and protocol version. It holds what the hub sent a client anyway:
its version, its capabilities and its instructions; nothing of anybody's environment.
"""

import os

from dari.cli.hub.protocol import PACKAGE, to_json
from dari.version import VERSION

MAX_FILES = 64
INTRODUCTIONS = ("initialize", "server/discover")


class Introductions:
    """Answers by method and protocol version. A file that cannot be read or written is as good as none."""

    def __init__(self, home: str, options: dict[str, object], cwd: str) -> None:
        self._folder = f"{home}/bridge/introductions"
        self._key = [VERSION, PACKAGE, options, cwd, os.environ.get("HOME", "")]

    def find(self, method: str, version: str) -> bytes:
        """The last result, as JSON; empty when there is none."""
        try:
            descriptor = os.open(self._path(method, version), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return b""
        try:
            info = os.fstat(descriptor)
            if info.st_uid != os.geteuid() or info.st_mode & 0o077:
                return b""
            return os.read(descriptor, info.st_size)
        finally:
            os.close(descriptor)

    def keep(self, method: str, version: str, result: bytes) -> None:
        if result == self.find(method, version):
            return
        path = self._path(method, version)
        made = f"{path}.{os.getpid()}"
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                is_whole = os.write(descriptor, result) == len(result)  # a disk may take a part, and be full then
            finally:
                os.close(descriptor)
            if is_whole:
                os.rename(made, path)
                self._forget_oldest()
                return
        except OSError:
            pass
        try:
            os.unlink(made)
        except OSError:
            pass

    def _forget_oldest(self) -> None:
        names = os.listdir(self._folder)
        if len(names) <= MAX_FILES:
            return
        paths = sorted((f"{self._folder}/{name}" for name in names), key=lambda path: os.lstat(path).st_mtime)
        for path in paths[: len(paths) - MAX_FILES]:
            os.unlink(path)

    def _path(self, method: str, version: str) -> str:
        try:
            from _blake2 import blake2b  # `hashlib` costs 5 ms of OpenSSL
        except ImportError:
            from hashlib import blake2b
        name = blake2b(to_json([*self._key, method, version]).encode(), digest_size=16).hexdigest()
        return f"{self._folder}/{name}.json"
