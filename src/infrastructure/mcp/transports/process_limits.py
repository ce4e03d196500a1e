"""Parses the resource limits of started servers: `core=0,nofile=4096`."""

import resource
from collections.abc import Mapping

DEFAULT_PROCESS_LIMITS = "core=0,nofile=4096"
"""No core dumps, which would contain secrets, and enough descriptors for any server. No address
space (`as`): runtimes such as V8 reserve more than they use. No processes (`nproc`): the kernel
counts those of the user."""


def parse_process_limits(text: str) -> Mapping[str, int]:
    """Limits by their setrlimit(2) name without `RLIMIT_`, in lower case; empty for empty text.
    Raises ValueError."""
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if not hasattr(resource, f"RLIMIT_{name.upper()}") or name != name.lower():
            raise ValueError(f"no such limit: {name}")
        if not value.isdecimal():
            raise ValueError(f"not a number: {entry}")
        limits[name] = int(value)
    return limits
