"""What a started server reaches over the network: nothing, a list of hosts, or what the operator
permits to all."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_DEFAULT_PORTS = (80, 443)
_ANY_SUBDOMAIN = "*."
_MAX_NAME, _MAX_LABEL, _MAX_PORT = 253, 63, 65_535


class ServerNetwork(StrEnum):
    """The network of a started server. The values are part of the public contract."""

    NONE = "none"
    """No network. Its installation still has the package registries."""
    ALLOWLIST = "allowlist"
    """HTTP and HTTPS to `network_hosts`, through a proxy of ours."""
    FULL = "full"
    """All addresses, at the ports that the operator permits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHost:
    """An entry of `network_hosts`: `api.example.com`, or `*.example.com` for all names below it;
    with `:PORT`, else at ports 80 and 443."""

    name: str
    is_parent: bool
    port: int | None

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises ValueError, with a message that is safe to show."""
        host, colon, port = text.partition(":")
        name = host.removeprefix(_ANY_SUBDOMAIN)
        if not all(map(_is_label, name.split("."))) or len(name) > _MAX_NAME:
            raise ValueError("must be a host name in lower case, such as api.example.com, *.example.com or host:8443")
        if colon and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _MAX_PORT):
            raise ValueError("has no valid port")
        return cls(name=name, is_parent=host != name, port=int(port) if colon else None)

    def permits(self, host: str, port: int) -> bool:
        """Whether a connection to the port of a host is permitted. `host` is as a client spells
        it."""
        name = host.lower().removesuffix(".")
        fits = name.endswith(f".{self.name}") if self.is_parent else name == self.name
        return fits and (port in _DEFAULT_PORTS if self.port is None else port == self.port)


class HostAllowlist:
    """The hosts of a server, within the `ports` that the operator permits; None for all."""

    def __init__(self, entries: Iterable[str], *, ports: tuple[int, ...] | None = None) -> None:
        """Raises ValueError."""
        self._hosts = tuple(map(AllowedHost.read, entries))
        self._ports = ports

    def permits(self, host: str, port: int) -> bool:
        """Whether a connection to the port of a host is permitted."""
        return (self._ports is None or port in self._ports) and any(each.permits(host, port) for each in self._hosts)


def _is_label(text: str) -> bool:
    plain = text.replace("-", "").replace("_", "")
    return (
        0 < len(text) <= _MAX_LABEL
        and plain.isascii()
        and plain.isalnum()
        and plain == plain.lower()
        and text[0] != "-"
    )
