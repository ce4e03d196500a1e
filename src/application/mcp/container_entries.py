"""Parses `docker run` and `podman run` in entries of desktop clients. Used by `client_entries.py`. No I/O."""

from dataclasses import dataclass, field

from domain.mcp.images import oci_image
from domain.mcp.packages import WrongPackageError

PROGRAMS = frozenset({"docker", "podman"})
_SWITCHES = frozenset({"-i", "--interactive", "--rm", "--init"})
_IGNORED = frozenset({"--name", "--pull"})
_ENVIRONMENT = frozenset({"-e", "--env"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """`env` are values that the command states itself."""

    image: str
    args: tuple[str, ...]
    env: dict[str, str] = field(repr=False)


def container_start(args: tuple[str, ...]) -> ContainerStart | None:
    """What follows `docker`; None for what a server of kind oci does not have: mounts, networks, users, ports."""
    if args[:1] != ("run",):
        return None
    rest, env = list(args[1:]), {}
    while rest and rest[0].startswith("-"):
        option, is_joined, value = rest.pop(0).partition("=")
        if option in _SWITCHES and not is_joined:
            continue
        if option not in _ENVIRONMENT | _IGNORED or not (is_joined or rest):
            return None
        value = value if is_joined else rest.pop(0)
        name, is_stated, stated = value.partition("=")
        if option in _ENVIRONMENT and is_stated:  # else it passes on a variable of the entry
            env[name] = stated
    if not rest:
        return None
    try:
        oci_image(rest[0], None)
    except WrongPackageError:
        return None
    return ContainerStart(image=rest[0], args=tuple(rest[1:]), env=env)
