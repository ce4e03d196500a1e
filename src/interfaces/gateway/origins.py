"""The permitted Host and Origin headers. They prevent a web page from reaching the gateway under
another name (DNS rebinding; MCP basic/transports, security warning). Pure."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

_LOCAL_NAMES = frozenset({"localhost"})


def refused_origin(headers: Mapping[str, str], public_url: str | None) -> str | None:
    """Why the request is refused; None if it is allowed.

    - Host must be an address, a name of this machine, or the name in the public URL.
    - Origin, which browsers send, must belong to the public URL, to the Host, or to this machine.
    """
    public_host = None if public_url is None else _host_of(public_url)
    host = _host_of(f"//{headers.get('host', '')}")
    if host is None or not (_is_address(host) or host in _LOCAL_NAMES or host == public_host):
        return "The Host header does not name this service (DRAGOMAN_PUBLIC_URL sets its name)."
    origin = headers.get("origin")
    if origin is None:
        return None
    came_from = _host_of(origin)
    if came_from is None or not (_is_loopback(came_from) or came_from in (public_host, host)):
        return "Pages of this Origin may not use the gateway."
    return None


@lru_cache(maxsize=256)
def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host in _LOCAL_NAMES or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
