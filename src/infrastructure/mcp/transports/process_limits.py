"""Parses the resource limits of started servers: `core=0,nofile=4096`."""

import resource
from collections.abc import Mapping

from infrastructure.confinement.process_group import NAMES

DEFAULT_PROCESS_LIMITS = "core=0,nofile=4096,data=4294967296,fsize=2147483648,memory=4294967296,processes=256"
"""No core dumps, which would contain secrets; enough of everything else for any server. No address
space (`as`): runtimes such as V8 reserve more than they use, but not of `data`. No `nproc`: the
kernel counts those of the user. `memory` and `processes` are of a server with all that it
starts."""


def parse_process_limits(text: str) -> Mapping[str, int]:
    """Limits by their setrlimit(2) name without `RLIMIT_`, in lower case; empty for empty text.
    Raises ValueError."""
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        is_known = name in NAMES or hasattr(resource, f"RLIMIT_{name.upper()}")
        if not is_known or name != name.lower():
            raise ValueError(f"no such limit: {name}")
        if not value.isdecimal():
            raise ValueError(f"not a number: {entry}")
        limits[name] = int(value)
    return limits
