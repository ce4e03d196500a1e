"""`make chaos`: every part, or those named; its figures, and exit code 1 if anything did not hold.

A part is a module with `options(parser)` and `run(arguments)`, which prints figures as they come
and gives the complaints.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos import (
    boundaries,
    connections,
    fair,
    kills,
    leavers,
    neighbours,
    postgres_outages,
    rolling_upgrade,
    soak,
    stories,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of trouble. `run` gives what did not hold."""

    about: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], list[str]]


PARTS: Mapping[str, Part] = {
    "connections": Part(about="connect, call and kill MCP servers", options=connections.options, run=connections.run),
    "boundaries": Part(
        about="kill -9 at every boundary of a run's steps", options=boundaries.options, run=boundaries.run
    ),
    "fair": Part(about="an organization floods the queue", options=fair.options, run=fair.run),
    "kills": Part(about="kill -9 at any moment under runs", options=kills.options, run=kills.run),
    "neighbours": Part(
        about="an organization beside another one's hostile servers", options=neighbours.options, run=neighbours.run
    ),
    "people": Part(about="remove people who use every way into a service", options=leavers.options, run=leavers.run),
    "postgres-outages": Part(
        about="stop and crash PostgreSQL and end its sessions under runs in hand",
        options=postgres_outages.options,
        run=postgres_outages.run,
    ),
    "rolling-upgrade": Part(
        about="replace services and workers by those of a newer version, under load",
        options=rolling_upgrade.options,
        run=rolling_upgrade.run,
    ),
    "soak": Part(about="thousands of runs on one service", options=soak.options, run=soak.run),
    "stories": Part(about="acts of clients, workers and time in any order", options=stories.options, run=stories.run),
}


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(
        prog="make chaos", description="What must hold whatever is killed, cut or stopped."
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help="; ".join(f"{name}: {part.about}" for name, part in PARTS.items()) + " (default: all)",
    )
    for part in PARTS.values():
        part.options(parser)
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.parts) - set(PARTS)):
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    complaints = []
    for name in arguments.parts or PARTS:
        print(f"{name}: {PARTS[name].about}", flush=True)
        complaints += [f"{name}: {complaint}" for complaint in PARTS[name].run(arguments)]
    for complaint in complaints:
        print(f"DID NOT HOLD: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
