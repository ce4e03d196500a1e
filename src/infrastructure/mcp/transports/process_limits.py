"""Resource limits of started servers, as an operator writes them: `core=0,nofile=4096`."""

import resource
from collections.abc import Mapping

DEFAULT_PROCESS_LIMITS = "core=0,nofile=4096"
"""No core dumps, which would hold secrets, and enough descriptors for any server. No address space (`as`): V8 and other
runtimes reserve far more than they use; no processes (`nproc`): the kernel counts all of the user's, not the server's."""


def parse_process_limits(text: str) -> Mapping[str, int]:
    """Limits by their name in setrlimit(2) without `RLIMIT_`, in lower case; empty for an empty text. Raises
    ValueError."""
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if not hasattr(resource, f"RLIMIT_{name.upper()}") or name != name.lower():
            raise ValueError(f"no such limit: {name}")
        if not value.isdecimal():
            raise ValueError(f"not a number: {entry}")
        limits[name] = int(value)
    return limits
