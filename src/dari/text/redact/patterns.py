"""Secrets known by what they look like, wherever they stand: key prefixes, JWTs, private keys, card numbers.

Each pattern comes with a lower-case hint: a text without the hint is not searched, which is a hundred times cheaper.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import log2

MARK = "<redacted>"

_AWS = ("akia", "asia", "aroa", "aida", "agpa", "anpa", "abia", "acca")
_B = r"(?<![A-Za-z0-9])"
SECRET_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]*-----|\Z)",
    ),
    ("private-lines", r"(?<=Private-Lines: ).*?(?=\nPrivate-MAC|\Z)"),
    ("b3blbnnzac1rzxktdje", r"b3BlbnNzaC1rZXktdjE[\w+/=\s]*"),
    ("age-secret-key-1", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    ("eyj", r"(?<![\w-])eyJ[\w-]{6,}(?:(?:\.[\w-]*){1,4}|\Z)"),
    ("bearer", r"(?<![\w-])(?i:bearer)(?:[ +]|%20)+(?=[\w.~+/=-]*\d|[\w.~+/=-]{20})[\w.~+/=-]{8,}"),
    # A token in a WebSocket's subprotocol, as Kubernetes takes it from browsers.
    (".authorization.k8s.io.", r"(?<=\.authorization\.k8s\.io\.)[\w-]{8,}"),
    ("basic", r"(?<![\w-])(?i:basic)(?: |\+|%20)+(?=[A-Za-z+/]*[\d=+/])[A-Za-z0-9+/]{8,}={0,2}"),
    ("token ", r"(?<![\w-])(?i:token) (?=[A-Za-z]*\d)[A-Za-z0-9_-]{20,}"),
    *((hint, rf"{_B}{hint.upper()}[A-Z0-9]{{16}}(?![A-Za-z0-9])") for hint in _AWS),
    ("gh", rf"{_B}gh[pousr]_[A-Za-z0-9]{{20,255}}"),
    ("github_pat_", r"github_pat_\w{20,255}"),
    ("gl", r"(?:glpat|gldt|glrt|glptt|glft|glsoat|glcbt|glimt|glagent)-[\w-]{16,}"),
    ("xox", r"xox[abcdeoprs]-[\w%-]{10,}"),
    ("xapp-", r"xapp-[\w-]{10,}"),
    ("hooks.slack.com", r"(?<=hooks\.slack\.com/services/)[\w/]{10,}"),
    ("/api/webhooks/", r"(?<=/api/webhooks/)\d{10,25}/[\w-]{20,}"),
    ("sk-", r"(?<![\w-])sk-[\w-]{16,}"),
    ("_live_", rf"{_B}(?:[srp]k|whsec)_live_\w{{10,}}"),
    ("_test_", rf"{_B}[sr]k_test_\w{{10,}}"),
    ("whsec_", r"whsec_[\w+/=-]{16,}"),
    ("aiza", r"AIza[\w-]{35}"),
    ("gocspx-", r"GOCSPX-[\w-]{20,}"),
    ("ya29.", r"ya29\.[\w.-]{10,}"),
    ("1//0", r"(?<![\w/])1//0[\w-]{30,}"),
    ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-[\w-]{30,}"),
    ("rubygems_", r"rubygems_[0-9a-f]{40,}"),
    ("dckr_pat_", r"dckr_pat_[\w-]{20,}"),
    ("hf_", rf"{_B}hf_[A-Za-z0-9]{{30,}}"),
    ("gsk_", rf"{_B}gsk_[A-Za-z0-9]{{30,}}"),
    ("r8_", rf"{_B}r8_[A-Za-z0-9]{{30,}}"),
    ("xai-", rf"{_B}xai-[A-Za-z0-9]{{30,}}"),
    ("pplx-", rf"{_B}pplx-[A-Za-z0-9]{{30,}}"),
    ("sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("key-", rf"{_B}key-[0-9a-f]{{32}}(?![0-9a-f])"),
    ("_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
    ("shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("sq0", r"sq0(?:atp|csp|idp)-[\w-]{20,}"),
    ("lin_api_", r"lin_api_[A-Za-z0-9]{30,}"),
    ("ntn_", rf"{_B}ntn_[A-Za-z0-9]{{30,}}"),
    ("secret_", rf"{_B}secret_[A-Za-z0-9]{{32,}}"),
    ("figd_", r"figd_[\w-]{20,}"),
    ("pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{20,}"),
    ("nrak-", r"NRAK-[A-Z0-9]{20,}"),
    ("pat", rf"{_B}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{40,}}"),
    ("dapi", rf"{_B}dapi[0-9a-f]{{32}}"),
    ("hv", rf"{_B}hv[sbr]\.[\w-]{{20,}}"),
    ("glsa_", r"glsa_[A-Za-z0-9]{30,}_[0-9a-f]{8}"),
    ("glc_", rf"{_B}glc_[A-Za-z0-9+/=]{{30,}}"),
    ("sntry", r"sntry[su]_[\w+/=-]{30,}"),
    ("sbp_", rf"{_B}sbp_[0-9a-f]{{40}}"),
    ("tskey-", r"tskey-[a-z]+-[\w-]{10,}"),
    ("atatt3", r"ATATT3[\w=-]{30,}"),
    ("dtk_", rf"{_B}dtk_[\w-]{{43}}"),
    ("dp.pt.", r"dp\.pt\.[A-Za-z0-9]{30,}"),
    ("nfp_", rf"{_B}nfp_[A-Za-z0-9]{{30,}}"),
    ("fm2_", rf"{_B}fm2_[\w+/=]{{30,}}"),
    ("pul-", rf"{_B}pul-[0-9a-f]{{40}}"),
    ("ltai", rf"{_B}LTAI[A-Za-z0-9]{{12,26}}(?![A-Za-z0-9])"),
    ("bot", r"(?<=bot)\d{8,10}:[\w-]{30,}"),
    (r":\/\/", r"(?<=:\\/\\/)[^/\s?#\"'<>\\]{1,700}(?=@)"),
    ("://", r"(?<=://)[^/\s?#\"'<>\\]{1,700}(?=@)"),
)
_SIGNS = "_-.:/"
_SIGN_OF_HINT = {
    "gh": "_",
    "shp": "_",
    "sntry": "_",
    "gl": "-",
    "xox": "-",
    "sq0": "-",
    "private key": "-",
    "pat": ".",
    "hv": ".",
    "bot": ":",
}
"""A character that the pattern needs and the hint does not show: `gh` alone is in `right` and `pat` in `path`."""


def _hints_by_sign() -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for hint, _ in SECRET_PATTERNS:
        sign = _SIGN_OF_HINT.get(hint) or next((each for each in _SIGNS if each in hint), "")
        groups.setdefault(sign, []).append(hint)
    return list(groups.items())


_HINTS_BY_SIGN = _hints_by_sign()
"""A text without the sign cannot match a pattern of the group: five searches instead of fifty."""
_CARD = re.compile(
    r"[2-6]\d{3}(?<![\w.-]\d{4})(?:\d{9,15}|([ -])\d{4}\1\d{4}\1\d{1,7}|([ -])\d{6}\2\d{4,5})(?![\w-]|\.\d)"
)
_RESIDENT = re.compile(r"\d{2}(?<![\w.-]\d{2})(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])-[1-8]\d{6}(?![\w-]|\.\d)")
"""A resident registration number of Korea: a date of birth, a hyphen, seven digits."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_OPAQUE = re.compile(r"[\w+/=.~%:-]+", re.ASCII)
_GUESSABLE = re.compile(r"[a-z]+\d{0,4}|\d[\d.,:TZ/+-]*|https?://.*|[\w-]+(?:\.[\w-]+){1,3}\.?", re.ASCII)
_BEFORE_NUMBER = frozenset(":[,")
_AFTER_NUMBER = frozenset(",}]")
MAX_OPAQUE_CHARS = 4096
_MIN_BITS = 3.0
_BEARERS = ("session", "state", "nonce", "ticket", "verifier", "assertion", "verification", "magic", "invit")
"""Such a value lets its holder in, whatever it looks like: a UUID or hex digits count here, not under `key`."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when first met: all of them together cost 7 ms, and most texts need none."""
    return re.compile(pattern, re.DOTALL)


def hide_patterns(text: str) -> tuple[str, int]:
    """Every secret known by its shape replaced, and how many there were."""
    total = 0
    lowered = text.lower()
    for hint, pattern in SECRET_PATTERNS:
        if hint in lowered:
            text, count = compiled(pattern).subn(MARK, text)
            total += count
    for numbers, is_real in ((_CARD, is_card_number), (_RESIDENT, lambda digits: True)):
        text, count = _hide_numbers(text, numbers, is_real)
        total += count
    return text, total


def may_match_pattern(text: str) -> bool:
    """May a secret be in it by its shape? Only the signs are asked for; `hide_patterns` looks closer."""
    lowered = text.lower()
    for sign, hints in _HINTS_BY_SIGN:
        if sign in lowered:
            for hint in hints:  # not `any`: a generator costs as much as the searches
                if hint in lowered:
                    return True
    return _CARD.search(text) is not None or ("-" in text and _RESIDENT.search(text) is not None)


def is_card_number(digits: str) -> bool:
    """A payment card: a known issuer, its length, and the check digit (Luhn)."""
    digits = digits.replace(" ", "").replace("-", "")
    head2, head4 = int(digits[:2]), int(digits[:4])
    if digits[0] == "4":
        fits = len(digits) in (13, 16, 19)
    elif head2 in (34, 37):
        fits = len(digits) == 15
    elif head2 in (36, 38) or 3000 <= head4 <= 3059:
        fits = len(digits) == 14
    elif 51 <= head2 <= 55 or 2221 <= head4 <= 2720 or 3528 <= head4 <= 3589:
        fits = len(digits) == 16
    else:
        fits = (head4 == 6011 or head2 in (62, 65) or 6440 <= head4 <= 6499) and 16 <= len(digits) <= 19
    return fits and _luhn(digits)


def is_opaque(value: str, name: str) -> bool:
    """Does the value of a suspicious name look like a secret: long, without spaces, and nothing one could guess?"""
    value = value.strip("\"'")
    if not 8 <= len(value) <= MAX_OPAQUE_CHARS or not _OPAQUE.fullmatch(value) or _GUESSABLE.fullmatch(value):
        return False
    has_digit = any(each.isdigit() for each in value)
    has_letter = any(each.isalpha() for each in value)
    if any(word in name.lower() for word in _BEARERS):
        return has_digit and has_letter
    if len(value) < 16 or _UUID.fullmatch(value) or _HEX.fullmatch(value) or not (has_digit and has_letter):
        return False
    return value != value.lower() and value != value.upper() and _bits(value) >= _MIN_BITS


def _bits(value: str) -> float:
    """Shannon entropy per character."""
    shares = [value.count(each) / len(value) for each in set(value)]
    return -sum(share * log2(share) for share in shares)


def _luhn(digits: str) -> bool:
    total = 0
    for place, each in enumerate(reversed(digits)):
        number = int(each) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _hide_numbers(text: str, pattern: re.Pattern[str], is_real: Callable[[str], bool]) -> tuple[str, int]:
    count = 0

    def replacement(found: re.Match[str]) -> str:
        nonlocal count
        if not is_real(found[0]):
            return found[0]
        count += 1
        # A bare number of a JSON document gives way to a string, or the document would be none.
        before = text[max(0, found.start() - 20) : found.start()].rstrip()[-1:]
        after = text[found.end() : found.end() + 20].lstrip()[:1]
        return f'"{MARK}"' if before in _BEFORE_NUMBER and after in _AFTER_NUMBER else MARK

    return pattern.sub(replacement, text), count
