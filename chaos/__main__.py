"""`make chaos`: a thousand cycles over each transport, the figures, and exit code 1 if anything is left behind."""

import argparse
import asyncio
import sys

from chaos.cycles import Outcome, figures, over_http, over_stdio, python_version

CYCLES = 1_000
MAX_GROWTH_KIB = 8 * 1024


async def run(cycles: int) -> list[Outcome]:
    """Both transports, one after the other."""
    outcomes = []
    for over in (over_stdio, over_http):
        outcome = await over(cycles)
        print(figures(outcome), flush=True)
        outcomes.append(outcome)
    return outcomes


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--cycles", type=int, default=CYCLES)
    cycles = parser.parse_args().cycles
    print(f"{cycles} connect, call and kill cycles over each transport ({python_version()}) …", flush=True)
    complaints = []
    for outcome in asyncio.run(run(cycles)):
        complaints += [f"{outcome.name}: {leak}" for leak in outcome.leaks]
        growth = outcome.after.memory_kib - outcome.before.memory_kib
        if growth > MAX_GROWTH_KIB:
            complaints.append(f"{outcome.name}: memory grew by {growth} KiB")
    for complaint in complaints:
        print(f"LEFT BEHIND: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
