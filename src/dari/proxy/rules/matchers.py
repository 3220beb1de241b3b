"""The text of a rule's matcher, read once: what it demands of the site and of the path.

Prefix matchers keep the original's three forms (`https://host/path`, `/path`, `host/path`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, Protocol

from dari.proxy.rules import conditions
from dari.proxy.rules.conditions import Condition
from dari.proxy.rules.regexes import SafeRegex
from dari.proxy.rules.site import SCHEMES, AuthorityPattern, Site, split_authority

MatcherKind = Literal["prefix", "glob", "regex"]


class Matcher(Protocol):
    def narrow(self, site: Site) -> Condition | None:
        """What remains to be checked for this site; None if nothing there can match."""
        ...

    def names(self, site: Site) -> bool:
        """Does the text name this host, so that the rule asks for its decryption?"""
        ...


class Nothing:
    """An empty matcher, or one whose authority cannot be."""

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

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if site.scheme == self._scheme and self._authority.matches(site) else None

    def names(self, site: Site) -> bool:
        return site.scheme == self._scheme and self._authority.matches(site)


class PathPrefix:
    """`/path`: any host, and it names none."""

    def __init__(self, path: str) -> None:
        self._condition = conditions.Prefix(path)

    def narrow(self, site: Site) -> Condition | None:
        return self._condition

    def names(self, site: Site) -> bool:
        return False


class TextPrefix:
    """Anything else: a byte prefix of authority and target, so `exam` matches `example.com`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._authority = AuthorityPattern.parse(text.partition("/")[0])

    def narrow(self, site: Site) -> Condition | None:
        authority = site.authority
        if self._text.startswith(authority):
            return conditions.Prefix(self._text[len(authority) :])
        return conditions.Prefix("", authority[len(self._text) :]) if authority.startswith(self._text) else None

    def names(self, site: Site) -> bool:
        return self._authority is not None and self._authority.matches(site)


class AllowHost:
    """`host`, `*.suffix`, `*`, `*.*`: the whole host, whatever the path."""

    def __init__(self, authority: AuthorityPattern, path: str = "") -> None:
        self._authority = authority
        self._condition: Condition = conditions.CaselessPrefix(path.lower()) if path else conditions.Prefix()

    def narrow(self, site: Site) -> Condition | None:
        return self._condition if self._authority.matches(site) else None

    def names(self, site: Site) -> bool:
        return self._authority.matches(site)


class AllowText:
    """`host/path`: prefix of authority and target in any case; the host alone decides about decryption."""

    def __init__(self, text: str) -> None:
        host, _, path = text.lower().partition("/")
        self._host = host
        self._condition = conditions.CaselessPrefix("/" + path)
        self._authority = AuthorityPattern.parse(host)

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
        self._scheme = conditions.Glob(SCHEMES.get(scheme, scheme) or "*")
        self._host = conditions.Glob(host or "*")
        self._names_host = bool(host.strip("*."))
        self._condition: Condition = conditions.Glob("/" + path) if slash else conditions.Prefix()

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

    def narrow(self, site: Site) -> Condition | None:
        return conditions.Pattern(self.regex, site)

    def names(self, site: Site) -> bool:
        return self._authority is not None and site.scheme == "https" and self._authority.matches(site)


def read_matcher(text: str, kind: MatcherKind = "prefix", *, is_allow: bool = False) -> Matcher:
    """Read the text as its kind says; `is_allow` for the wider forms of allow rules."""
    text = text.strip()
    if not text:
        return Nothing()
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
    return UrlPrefix(SCHEMES[scheme], pattern, conditions.Prefix(slash + path)) if pattern else Nothing()


def _read_allow(text: str) -> Matcher:
    authority, slash, path = text.partition("/")
    if slash and not authority.startswith("*"):
        return AllowText(text)
    pattern = AuthorityPattern.parse(authority)
    return AllowHost(pattern, slash + path) if pattern else Nothing()


def _split_scheme(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.partition("://")
    return (scheme.lower(), rest) if separator and "/" not in scheme else ("", text)
