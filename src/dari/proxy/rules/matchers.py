"""The text of a rule's matcher, read once: what it demands of the site and of the path.

Prefix matchers keep the original's three forms (`https://host/path`, `/path`, `host/path`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from dari.proxy.rules import conditions
from dari.proxy.rules.conditions import Condition, SafeRegex
from dari.proxy.rules.site import DEFAULT_PORTS, SCHEMES, AuthorityPattern, Site, split_authority

MatcherKind = Literal["prefix", "glob", "regex"]


class Extent(NamedTuple):
    """What a matcher can fit, as globs: enough to make up requests that it matches."""

    hosts: tuple[str, ...] = ("*",)
    port: int | None = None
    path: str = "/*"
    schemes: tuple[str, ...] = ("http", "https")
    is_known: bool = True
    """False for a regex, which may fit more than this."""


class Matcher(Protocol):
    @property
    def extent(self) -> Extent: ...

    def narrow(self, site: Site) -> Condition | None:
        """What remains to be checked for this site; None if nothing there can match."""
        ...

    def names(self, site: Site) -> bool:
        """Does the text name this host, so that the rule asks for its decryption?"""
        ...


class NoMatcher:
    """An empty matcher, or one whose authority cannot be."""

    extent = Extent(hosts=())

    def narrow(self, site: Site) -> Condition | None:
        return None

    def names(self, site: Site) -> bool:
        return False


class UrlPrefix:
    """`https://host[:port][/path]`: scheme equal, authority pattern, prefix of path and query."""

    def __init__(self, scheme: str, authority: AuthorityPattern, condition: Condition) -> None:
        self._scheme = scheme
        self._authority = authority
        self._condition = condition
        self.extent = Extent(authority.globs, authority.port, _path_glob(condition.prefix), (scheme,))

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if site.scheme == self._scheme and self._authority.matches(site) else None

    def names(self, site: Site) -> bool:
        return site.scheme == self._scheme and self._authority.matches(site)


class PathPrefix:
    """`/path`: any host, and it names none."""

    def __init__(self, path: str) -> None:
        self._condition = conditions.PrefixCondition(path)
        self.extent = Extent(path=_path_glob(path))

    def narrow(self, site: Site) -> Condition | None:
        return self._condition

    def names(self, site: Site) -> bool:
        return False


class TextPrefix:
    """Anything else: a byte prefix of authority and target, so `exam` matches `example.com`."""

    def __init__(self, text: str) -> None:
        self._text = text
        authority, slash, path = text.partition("/")
        self._authority = AuthorityPattern.parse(authority)
        host, port = split_authority(authority)
        # Without a path the text may end in the middle of the host, and a text such as `exam` is meant to.
        is_part = not slash and ("." not in host.strip(".") or host.endswith((".", "-"))) and host != "localhost"
        self.extent = Extent((host, f"{host}*") if is_part else (host,), port, _path_glob(slash + path))

    def narrow(self, site: Site) -> Condition | None:
        authority = site.authority
        if self._text.startswith(authority):
            return conditions.PrefixCondition(self._text[len(authority) :])
        return (
            conditions.PrefixCondition("", authority[len(self._text) :]) if authority.startswith(self._text) else None
        )

    def names(self, site: Site) -> bool:
        return self._authority is not None and self._authority.matches(site)


class AllowHost:
    """`host`, `*.suffix`, `*`, `*.*`: the whole host, whatever the path."""

    def __init__(self, authority: AuthorityPattern, path: str = "") -> None:
        self._authority = authority
        self._condition: Condition = (
            conditions.CaselessPrefixCondition(path.lower()) if path else conditions.PrefixCondition()
        )
        self.extent = Extent(authority.globs, authority.port, _path_glob(path))

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if self._authority.matches(site) else None

    def names(self, site: Site) -> bool:
        return self._authority.matches(site)


class AllowText:
    """`host/path`: prefix of authority and target in any case; the host alone decides about decryption."""

    def __init__(self, text: str) -> None:
        host, _, path = text.lower().partition("/")
        self._host = host
        self._condition = conditions.CaselessPrefixCondition("/" + path)
        self._authority = AuthorityPattern.parse(host)
        name, port = split_authority(host)
        self.extent = Extent((name,), port, _path_glob("/" + path))

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if site.authority.lower() == self._host else None

    def names(self, site: Site) -> bool:
        return self._authority is not None and self._authority.matches(site)


class GlobMatcher:
    """`*` stands for any run of characters. `scheme://`, port and path may each be left out and are then free."""

    def __init__(self, text: str) -> None:
        scheme, rest = _split_scheme(text)
        authority, slash, path = rest.partition("/")
        host, self._port = split_authority(authority.removesuffix(":*"))
        self._scheme = conditions.GlobCondition(SCHEMES.get(scheme, scheme) or "*")
        self._host = conditions.GlobCondition(host or "*")
        self._names_host = bool(host.strip("*."))
        self._condition: Condition = conditions.GlobCondition("/" + path) if slash else conditions.PrefixCondition()
        schemes = tuple(name for name in DEFAULT_PORTS if self._scheme.holds(name))
        self.extent = Extent((host or "*",), self._port, "/" + path if slash else "/*", schemes)

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if self._covers(site) else None

    def names(self, site: Site) -> bool:
        return self._names_host and self._covers(site)

    def _covers(self, site: Site) -> bool:
        if self._port is not None and self._port != site.port:
            return False
        return self._scheme.holds(site.scheme) and self._host.holds(site.host)


class RegexMatcher:
    """Searched in the whole URL. It names a host only when it starts with a literal `https://host/`."""

    _HOST = re.compile(r"\^?https\??:(?:\\?/){2}((?:[A-Za-z0-9-]|\\?\.)+)(?::(\d+))?(?:\\?/|\$|\Z)")

    def __init__(self, regex: SafeRegex) -> None:
        self.regex = regex
        found = self._HOST.match(regex.pattern)
        self._authority = None
        if found is not None:
            host, port = found[1].replace("\\", ""), found[2]
            self._authority = AuthorityPattern(host.lower(), int(port) if port else None)
        globs = self._authority.globs if self._authority is not None else ("*",)
        self.extent = Extent(globs, self._authority and self._authority.port, is_known=False)

    def narrow(self, site: Site) -> Condition | None:
        return conditions.RegexCondition(self.regex, site)

    def names(self, site: Site) -> bool:
        return self._authority is not None and site.scheme == "https" and self._authority.matches(site)


def read_matcher(text: str, kind: MatcherKind = "prefix", *, is_allow: bool = False) -> Matcher:
    """Read the text as its kind says; `is_allow` for the wider forms of allow rules."""
    text = text.strip()
    if not text:
        return NoMatcher()
    if kind == "prefix":
        return _read_prefix(text, _read_allow if is_allow else TextPrefix)
    return GlobMatcher(text) if kind == "glob" else RegexMatcher(SafeRegex(text))


def _read_prefix(text: str, read_other: Callable[[str], Matcher]) -> Matcher:
    if text.startswith("/"):
        return PathPrefix(text)
    scheme, rest = _split_scheme(text)
    if scheme not in SCHEMES:
        return read_other(text)
    authority, slash, path = rest.partition("/")
    pattern = AuthorityPattern.parse(authority)
    return UrlPrefix(SCHEMES[scheme], pattern, conditions.PrefixCondition(slash + path)) if pattern else NoMatcher()


def _read_allow(text: str) -> Matcher:
    authority, slash, path = text.partition("/")
    if slash and not authority.startswith("*"):
        return AllowText(text)
    pattern = AuthorityPattern.parse(authority)
    return AllowHost(pattern, slash + path) if pattern else NoMatcher()


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    return (scheme.lower(), rest) if separator and "/" not in scheme else ("", text)


def _path_glob(prefix: str) -> str:
    return (prefix or "/") + "*"
