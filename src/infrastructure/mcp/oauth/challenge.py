"""Parses `WWW-Authenticate` of MCP servers: metadata address and required scope (RFC 6750, RFC
9728)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MAX_HEADER = 8192
_BEARER = re.compile(r"(?:^|,\s*)bearer(?:\s+|$)", re.IGNORECASE)
# The lookbehind prevents a failed match from starting again inside a word.
_PARAMETER = re.compile(r'(?<![A-Za-z0-9_-])([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The server's requirements for credentials."""

    resource_metadata: str | None = None
    scope: str | None = None
    error: str | None = None


def read_challenge(headers: Iterable[str]) -> Challenge:
    """The first Bearer challenge; missing parameters are None."""
    for header in headers:
        start = _BEARER.search(header[:_MAX_HEADER])
        if start is None:
            continue
        found: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(header[start.end() : _MAX_HEADER]):
            found.setdefault(name.lower(), _ESCAPE.sub(r"\1", quoted) or plain)
        return Challenge(
            resource_metadata=found.get("resource_metadata"), scope=found.get("scope"), error=found.get("error")
        )
    return Challenge()
