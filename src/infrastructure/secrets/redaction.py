"""Removes secrets from logs and traces."""

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from application.system.lru import LruCache
from domain.secrets.names import is_secret_name

REDACTED = "[redacted]"

_MIN_SECRET = 6
"""Shorter values are ordinary words: hiding them would garble text and protect nothing."""

_MAX_SECRETS = 20_000
"""Most registered values; the least recently registered ones are dropped, so that hourly renewed
tokens do not fill the memory. Every use of a value registers it again."""

_KEY_LENGTH = 12
_SCHEMES = frozenset({"basic", "bearer", "digest", "token"})
_MAX_DEPTH = 32
# Unregistered tokens: ours, the common `sk-…`, and what follows an authorization scheme.
_TOKENS = re.compile(
    r"\b(?:dgm_|sk-)[A-Za-z0-9_-]{16,}|\bwhsec_[A-Za-z0-9+/=]{16,}"
    r"|(?<=\bBearer )[^\s\"',;]{8,}|(?<=\bBasic )[A-Za-z0-9+/=]{8,}"
)


class Redactor:
    """Replaces registered secret values, texts that look like tokens, and the values of keys with
    names of secrets.

    Registered values are found as they are, percent-encoded and inside JSON strings.
    """

    def __init__(self, secrets: Iterable[str] = (), *, limit: int = _MAX_SECRETS) -> None:
        self._registered: LruCache[str, bool] = LruCache(limit)
        self._secrets: tuple[str, ...] = ()
        self.register(*secrets)

    def register(self, *secrets: str) -> None:
        """Hide these values from now on, except those shorter than six characters."""
        new = [secret for secret in secrets if len(secret) >= _MIN_SECRET]
        known = all(secret in self._registered for secret in new)
        for secret in new:
            self._registered.put(secret, True)
        if known:
            return
        found = {spelling for secret in self._registered for spelling in _spellings(secret)}
        # Longest first: a secret that contains another one is hidden as a whole. A new tuple, so
        # that readers see a complete one.
        self._secrets = tuple(sorted(found, key=len, reverse=True))

    def redact(self, text: str) -> str:
        return _TOKENS.sub(REDACTED, self.hide(text))

    def hide(self, text: str) -> str:
        """The text without registered secrets. Texts that only look like secrets stay."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return text

    def redact_value(self, value: object, key: str = "", *, depth: int = 0) -> object:
        """A structure of mappings and sequences without secrets; `key` is the name of the value.

        Numbers, booleans and None stay, whatever their key (`max_tokens` is not a secret).
        """
        if value is None or isinstance(value, bool | int | float):
            return value
        if key and is_secret_name(key):
            return REDACTED
        if isinstance(value, str):
            return self.redact(value)
        if depth >= _MAX_DEPTH:
            return REDACTED
        if isinstance(value, Mapping):
            return {name: self.redact_value(inner, str(name), depth=depth + 1) for name, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.redact_value(inner, depth=depth + 1) for inner in value]
        return self.redact(value.decode(errors="replace") if isinstance(value, bytes) else str(value))


def secrets_in(name: str, value: str) -> tuple[str, ...]:
    """The parts of a setting's value to hide: all of it if its name or form indicates a secret, and
    credentials after an authorization scheme. Words such as `production` or `Europe/Lisbon` stay
    readable."""
    if not is_secret_name(name) and not _looks_secret(value):
        return ()
    scheme, separator, credentials = value.partition(" ")
    return (value, credentials) if separator and scheme.lower() in _SCHEMES else (value,)


def _looks_secret(value: str) -> bool:
    if "://" in value:
        return "@" in value
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= _KEY_LENGTH and is_mixed and not any(map(str.isspace, value)) and "/" not in value


def _spellings(secret: str) -> tuple[str, ...]:
    in_json = (json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return secret, quote(secret, safe=""), *in_json
