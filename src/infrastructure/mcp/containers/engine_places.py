"""Finds the UNIX socket of a container engine."""

import os
from pathlib import Path

_PLACES = (
    "/run/user/{user}/podman/podman.sock",
    "/run/user/{user}/docker.sock",
    "/run/podman/podman.sock",
    "/run/docker.sock",
    "/var/run/docker.sock",
)


def engine_socket(configured: str) -> Path | None:
    """The configured path (`auto`, `none`, `unix:///…`); by `auto` the user's own engine first,
    then the system's, of those that are there."""
    if configured == "none":
        return None
    if configured != "auto":
        return Path(configured.removeprefix("unix://"))
    places = (Path(place.format(user=os.getuid())) for place in _PLACES)
    return next((place for place in places if place.is_socket()), None)
