"""Does a header, parameter, key, element or variable of this name hold a secret? Judged by the words in the name.

`password_confirmation`, `X-Auth`, `otpCode` and `user[pin]` are words with a secret among them; `monkey`, `author`
and `tokenizer` are not. Names without any separator (`PHPSESSID`, `csrfmiddlewaretoken`) are searched for long words.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote_plus

from dari.text.redact.patterns import MARK, is_opaque


class Sensitivity(IntEnum):
    """What the name alone says about the value."""

    HARMLESS = 0
    SUSPICIOUS = 1
    """Secret if the value looks like one (`shapes.is_opaque`): `session`, `state`, `code`."""
    UNLESS_COUNT = 2
    """Secret unless it is a number: `tokens` are counted by every model, `pass` by every test runner."""
    SECRET = 3


_SECRET_WORDS = frozenset(
    {
        *(
            "password",
            "passwords",
            "passwd",
            "passwds",
            "pwd",
            "pw",
            "passphrase",
            "passcode",
            "passkey",
            "pswd",
            "pword",
        ),
        *("secret", "secrets", "token", "credential", "credentials", "creds", "apikey", "apikeys", "jwt", "bearer"),
        *("auth", "authn", "authentication", "authorization", "authorisation", "cookie", "cookies", "sessid", "sess"),
        *("otp", "totp", "hotp", "mfa", "pin", "cvv", "cvc", "cvn", "csrf", "xsrf", "signature", "sig", "ssn"),
        *("mnemonic", "privkey", "pat", "sessionid", "samlresponse", "samlrequest", "cavv"),
        # Other languages: people name their fields in their own.
        *("비밀번호", "비번", "암호", "패스워드", "토큰", "인증번호", "인증코드", "인증키", "카드번호", "주민등록번호"),
        *("주민번호", "보안코드", "개인키", "비밀키", "쿠키", "パスワード", "暗証番号", "トークン", "密码", "密碼"),
        *("口令", "令牌", "contraseña", "contrasena", "senha", "passwort", "kennwort", "motdepasse", "wachtwoord"),
        *("пароль", "токен", "hasło", "haslo", "parola", "lösenord", "salasana", "şifre", "sifre"),
    }
)
_COUNTABLE_WORDS = frozenset({"tokens", "pass", "signatures", "sigs", "pins", "auths", "jwts", "otps"})
_SUSPICIOUS_WORDS = frozenset(
    {
        *("session", "sessions", "state", "nonce", "verifier", "verification", "assertion", "ticket", "magic"),
        *("invite", "invitation", "code", "key", "keys", "seed", "salt", "grant", "refresh", "hmac", "oauth", "saml"),
    }
)
_KEY_OWNERS = frozenset(
    {
        *("api", "access", "secret", "private", "signing", "sign", "encryption", "encrypt", "decryption", "shared"),
        *("auth", "master", "account", "subscription", "functions", "function", "session", "service", "license"),
        *("licence", "storage", "admin", "deploy", "ssh", "pgp", "gpg", "rsa", "tls", "ssl", "aes", "hmac", "host"),
        *("app", "application", "server", "security", "recovery", "backup", "root", "bot", "webhook", "consumer"),
        *("maps", "serial", "activation", "hub", "instrumentation", "write", "publish"),
    }
)
"""`<word> key` is a secret; `primary key`, `public key`, `sort key`, `cache key`, `Sec-WebSocket-Key` are not."""
_PUBLIC_KEY_OWNERS = frozenset(
    {
        *("public", "pub", "primary", "foreign", "sort", "cache", "partition", "object", "idempotency", "socket"),
        *("unique", "composite", "row", "range", "group", "translation", "i", "hot", "s", "issue", "project"),
    }
)
_ABOUT_WORDS = frozenset(
    {
        *("type", "types", "count", "counts", "counter", "limit", "limits", "budget", "url", "urls", "uri", "endpoint"),
        *("expires", "expiry", "expiration", "expired", "ttl", "timeout", "duration", "lifetime", "algorithm", "alg"),
        *("algorithms", "method", "methods", "name", "names", "policy", "status", "enabled", "disabled", "required"),
        *("length", "len", "size", "version", "provider", "providers", "scheme", "schemes", "strength", "at", "in"),
        *("by", "date", "time", "timestamp", "age", "format", "usage", "used", "user", "username", "email", "details"),
        *("present", "path", "dir", "file", "header", "level", "mode", "rate", "total", "max", "min", "remaining"),
        *("issuer", "audience", "attempts", "retries", "realm", "domain", "samesite", "secure", "ms", "seconds", "s"),
    }
)
"""At the end of a name these say that the value is about a secret: `token_type`, `password_changed_at`."""
_CURSOR_WORDS = frozenset({"page", "next", "prev", "previous", "continuation", "sync", "cursor", "pagination", "skip"})
"""Before `token`: an agent needs it to read on."""
_QUERY_SECRETS = frozenset({"code", "key", "codeverifier", "samlresponse", "assertion", "hmac", "session", "pass"})
"""Secrets in a query or form, everyday words in JSON (`{"code": 404}`)."""
_GLUED = re.compile(
    r"passw(?:or)?d|passwort|passphrase|passcode|credential|sessi?on?id|phpsess|aspsess|sess(?:ion)?id|sesskey"
    r"|apikey|csrf|xsrf|(?:access|auth|refresh|bearer|id|security|middleware|verification|xsrf|api|private)token"
    r"|authcode|authkey|authtoken|oauthtoken|(?:client|app|api|shared|consumer)secret|secret(?:access)?key"
    r"|(?:private|signing|encryption|access|shared|master|account|subscription|functions|session)key"
    r"|accesskeyid|connectionstring|setcookie|cardn(?:umber|um|o)$|creditcard|ccn(?:umber|um|o)?$|cvv2?$|otpcode"
    r"|samlre(?:sponse|quest)|pincode|securitycode|비밀번호|카드번호|주민등록번호"
)
_GLUED_ENDINGS = ("token", "secret", "password", "cookie", "jwt", "passwd", "pwd", "sessid")
_NUMBERED = frozenset({"card", "cc", "creditcard", "debitcard", "pan", "iban", "account"})
_NUMBERS = frozenset({"number", "num", "no", "nr"})
_PUBLIC_SIDS = frozenset({"account", "message", "call", "service", "conference", "media", "phone", "recording"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
MAX_NAME_CHARS = 200


@lru_cache(maxsize=8192)
def sensitivity(name: str, *, in_query: bool = False) -> Sensitivity:
    """By the words of the name; `in_query` for a parameter of a URL or form, where `code` and `key` are secrets."""
    if len(name) > MAX_NAME_CHARS:
        return Sensitivity.HARMLESS
    plain = unquote_plus(name)
    words = [word.lower() for word in _WORD.findall(plain)]
    if not words:
        return Sensitivity.HARMLESS
    joined = "".join(words)
    if in_query and joined in _QUERY_SECRETS:
        return Sensitivity.SECRET
    if len(words) > 1 and words[-1] in _ABOUT_WORDS:
        return Sensitivity.HARMLESS
    if words[-1] in ("token", "tokens") and len(words) > 1 and words[-2] in _CURSOR_WORDS:
        return Sensitivity.HARMLESS
    if any(joined.endswith(f"{word}token") for word in ("page", "next", "continuation", "sync")):
        return Sensitivity.HARMLESS
    if not _SECRET_WORDS.isdisjoint(words) or _GLUED.search(joined):
        return Sensitivity.SECRET
    if _is_session_id(words) or _is_key(words) or _is_number(words):
        return Sensitivity.SECRET
    if any(word.endswith(_GLUED_ENDINGS) or word.removesuffix("s").endswith(_GLUED_ENDINGS) for word in words):
        return Sensitivity.UNLESS_COUNT if words[-1].endswith("s") else Sensitivity.SECRET
    if words[-1] in _COUNTABLE_WORDS or any(word in _COUNTABLE_WORDS - {"pass"} for word in words):
        return Sensitivity.UNLESS_COUNT
    if words[-1] in ("key", "keys") and len(words) > 1 and words[-2] in _PUBLIC_KEY_OWNERS:
        return Sensitivity.HARMLESS
    return Sensitivity.SUSPICIOUS if any(word in _SUSPICIOUS_WORDS for word in words) else Sensitivity.HARMLESS


def is_secret_name(name: str, *, in_query: bool = False) -> bool:
    """Does a value of this name hide, whatever it looks like?"""
    return sensitivity(name, in_query=in_query) >= Sensitivity.UNLESS_COUNT


def _is_session_id(words: list[str]) -> bool:
    """`sid` of Express and SAP, `session_id`; the `account_sid` and `message_sid` of Twilio are public."""
    if "sid" in words:
        return words.index("sid") == 0 or words[words.index("sid") - 1] not in _PUBLIC_SIDS
    return any(
        word in ("id", "data", "ticket", "hash", "value", "cookie") and before == "session"
        for before, word in pairwise(words)
    )


def _is_key(words: list[str]) -> bool:
    return any(word in ("key", "keys") and before in _KEY_OWNERS for before, word in pairwise(words))


def _is_number(words: list[str]) -> bool:
    return any(word in _NUMBERS and before in _NUMBERED for before, word in pairwise(words))


_TELLS_NOTHING = frozenset({"", MARK, "true", "false", "null", "none", "undefined", "yes", "no", "nil", "*", "..."})
_NUMBER = re.compile(r"-?\d{1,10}(?:\.\d{1,10})?")


def is_secret(name: str, value: str, *, in_query: bool = False) -> bool:
    """Has this value to be hidden? Flags and empty values tell nothing, and stay."""
    level = sensitivity(name, in_query=in_query)
    if level is Sensitivity.HARMLESS:
        return False
    plain = value.strip(" \t\"'\\;,").lower() if len(value) < 200 else value
    if plain in _TELLS_NOTHING:
        return False
    if level is Sensitivity.SUSPICIOUS:
        return is_opaque(value.strip(" \t\\"), name)
    if level is Sensitivity.UNLESS_COUNT:
        return _NUMBER.fullmatch(plain) is None
    return True
