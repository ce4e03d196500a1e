"""OAuth clients of the gateway: what they say about themselves, and where a browser may be sent
back to."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from domain.errors import ServiceError, invalid
from domain.json_value import JsonObject

MAX_REDIRECT_URIS = 10
MAX_URI = 500
MAX_NAME = 100

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,49}")
_UNSAFE = frozenset(
    {"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "javascript", "mailto", "vbscript", "view-source"}
)
"""Schemes that browsers treat in a special way; programs have private schemes (RFC 8252, section
7.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A public client: it has no secret, and proves with PKCE that it began an authorization.

    - `host` has published the client's metadata. None for a client that registered itself: nothing
      vouches for its name.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str | None = None

    def accepts(self, redirect_uri: str) -> bool:
        """Whether it is one of the client's redirect URIs: the same text, or on this machine with
        another port (RFC 8252, section 7.3)."""
        if redirect_uri in self.redirect_uris:
            return True
        local = _without_port(redirect_uri)
        return local is not None and any(_without_port(each) == local for each in self.redirect_uris)


def client_of(document: JsonObject, *, client_id: str, host: str | None = None) -> OAuthClient:
    """The client with this metadata (RFC 7591, section 2). Raises INVALID `invalid_redirect_uri`,
    `invalid_client_metadata`."""
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise invalid("invalid_redirect_uri", f"redirect_uris must be a list of 1 to {MAX_REDIRECT_URIS} URIs.")
    redirect_uris = tuple(uri if isinstance(uri, str) else "" for uri in uris)
    for uri in redirect_uris:
        _require_redirect_uri(uri)
    name = document.get("client_name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME or not name.isprintable():
        raise _not_valid(f"client_name must be at most {MAX_NAME} printable characters.")
    for member, ours in (("response_types", "code"), ("grant_types", "authorization_code")):
        wanted = document.get(member, [ours])
        if not isinstance(wanted, list) or ours not in wanted:
            raise _not_valid(f"{member} must have {ours}.")
    return OAuthClient(
        id=client_id, name=name.strip() or host or host_of(redirect_uris[0]), redirect_uris=redirect_uris, host=host
    )


def host_of(uri: str) -> str:
    """Where a redirect URI leads, for people: a host, or the scheme of a program."""
    parts = urlsplit(uri)
    return parts.hostname if parts.scheme in ("http", "https") and parts.hostname else f"{parts.scheme}:"


def is_local(uri: str) -> bool:
    """Whether a redirect URI leads to a program on the person's machine."""
    parts = urlsplit(uri)
    return parts.scheme not in ("http", "https") or parts.hostname in _LOOPBACK


def is_client_url(client_id: str) -> bool:
    """Whether a client id is the URL of a metadata document: https, a path, and nothing that could
    be read in two ways. A host of this machine needs no TLS."""
    parts = _parsed(client_id)
    if parts is None or not parts.hostname or parts.query or "?" in client_id:
        return False
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return False
    return len(parts.path) > 1 and not {".", ".."}.intersection(parts.path.split("/"))


def _require_redirect_uri(uri: str) -> None:
    parts = _parsed(uri)
    if parts is None or _SCHEME.fullmatch(parts.scheme) is None or parts.scheme in _UNSAFE:
        detail = f"A redirect URI must be an absolute URI of at most {MAX_URI} characters, without fragment and user."
        raise invalid("invalid_redirect_uri", detail)
    if parts.scheme in ("http", "https") and not parts.hostname:
        raise invalid("invalid_redirect_uri", "A redirect URI must name a host.")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise invalid("invalid_redirect_uri", "A redirect URI must begin with https, unless it leads to this machine.")


def _parsed(uri: str) -> SplitResult | None:
    """None for what browsers and this service could read in two ways."""
    if not 0 < len(uri) <= MAX_URI or not uri.isascii() or not uri.isprintable():
        return None
    if any(character in uri for character in ' #\\<>"`^{|}') or "://" not in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return None if "@" in parts.netloc else parts


def _without_port(uri: str) -> tuple[str, str, str] | None:
    """A redirect URI to this machine without its port, else None."""
    parts = _parsed(uri)
    if parts is None or parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        return None
    return parts.hostname, parts.path, parts.query


def _not_valid(detail: str) -> ServiceError:
    return invalid("invalid_client_metadata", detail)
