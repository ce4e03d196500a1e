"""A command that confines itself, then executes a program that needs no files, no network and
little else.

For programs that are started by libraries, which take the path of an executable and nothing more.
Standard library only, and cheap to import.
"""

import os
import resource
import sys

from infrastructure.confinement.plan import Plan

_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_CPU, 120),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_DATA, 1024**3),
)


def main() -> None:
    """Execute the program of the first argument. Without Landlock in the kernel only limits
    hold."""
    command = sys.argv[1:]
    plan = Plan()
    plan.ports, plan.fixed_modes = (), True
    plan.readable.append(os.path.dirname(os.path.realpath(command[0])))
    for limit, value in _LIMITS:
        hard = resource.getrlimit(limit)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))
    try:
        plan.confine(command, None, unreachable=(os.getppid(),))
    except OSError as exc:
        sys.stderr.write(f"not confined: {exc}\n")
    os.execv(command[0], command)  # noqa: S606 (no shell is the point)
