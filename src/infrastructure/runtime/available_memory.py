"""The memory that this process may use: the machine's, or less by limits of its control group or
its own."""

import os
import resource
from pathlib import Path

_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes: the smallest bound that holds."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *group_limits(_GROUP, _GROUPS)]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            bounds.append(soft)
    return min(bounds)


def group_limits(own: Path, root: Path) -> list[int]:
    """Limits of the process's control group and of the groups around it; of version 1, of its
    memory controller."""
    limits: list[int] = []
    for line in _text(own).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            mount, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = mount / path.lstrip("/")
        for group in (inner, *inner.parents):
            # In a container the path may be that of the machine; its own group is then the root.
            limits += [int(text) for text in (_text(group / name).strip(),) if text.isdigit()]
            if group == mount:
                break
    return limits


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
