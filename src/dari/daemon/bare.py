"""What a daemon may know of its starter. No imports: a command that starts one waits for this."""

_NAMES = frozenset(("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "TMPDIR"))
_PREFIXES = ("LC_", "XDG_", "DARI_")


def is_bare(name: str) -> bool:
    """Whether this variable says where the daemon lives or which language it speaks: no secrets."""
    return name in _NAMES or name.startswith(_PREFIXES)
