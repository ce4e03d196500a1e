"""Parses `docker run` and `podman run` in entries of desktop clients. Used by `client_entries.py`.
No I/O."""

from dataclasses import dataclass, field

from domain.mcp.images import oci_image
from domain.mcp.network import ServerNetwork
from domain.mcp.packages import WrongPackageError

PROGRAMS = frozenset({"docker", "podman"})
_SWITCHES = frozenset({"-i", "--interactive", "--rm", "--init"})
_IGNORED = frozenset({"--name", "--pull"})
_ENVIRONMENT = frozenset({"-e", "--env"})
_NETWORK = frozenset({"--network", "--net"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """`env` are values that the command states itself."""

    image: str
    args: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    network: ServerNetwork


def container_start(args: tuple[str, ...]) -> ContainerStart | None:
    """What follows `docker`; None for what a server of kind oci does not have: mounts, named
    networks, users, ports."""
    options, rest = _split(args[1:]) if args[:1] == ("run",) else ([], [])
    if options is None or not rest:
        return None
    networks = {value for option, value in options if option in _NETWORK}
    if networks - {ServerNetwork.NONE.value}:
        return None
    try:
        oci_image(rest[0], None)
    except WrongPackageError:
        return None
    stated = (value.partition("=") for option, value in options if option in _ENVIRONMENT)
    return ContainerStart(
        image=rest[0],
        args=tuple(rest[1:]),
        env={name: value for name, is_stated, value in stated if is_stated},  # others are variables of the entry
        network=ServerNetwork.NONE if networks else ServerNetwork.FULL,
    )


def _split(args: tuple[str, ...]) -> tuple[list[tuple[str, str]] | None, list[str]]:
    """Options with their values, and what follows; None for an option that is not known."""
    options: list[tuple[str, str]] = []
    rest = list(args)
    while rest and rest[0].startswith("-"):
        option, is_joined, value = rest.pop(0).partition("=")
        if option in _SWITCHES and not is_joined:
            continue
        if option not in _ENVIRONMENT | _IGNORED | _NETWORK or not (is_joined or rest):
            return None, rest
        options.append((option, value if is_joined else rest.pop(0)))
    return options, rest
