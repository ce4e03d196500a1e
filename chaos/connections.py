"""A thousand cycles of connect, call and kill over each transport, and the complaints if anything
is left behind."""

import argparse
import asyncio

from chaos.cycles import figures, over_http, over_stdio, python_version

CYCLES = 1_000
MAX_GROWTH_KIB = 8 * 1024


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--cycles", type=int, default=CYCLES, help="per transport (default %(default)s)")


def run(arguments: argparse.Namespace) -> list[str]:
    """Both transports, one after the other; what was left behind."""
    cycles: int = arguments.cycles
    print(f"{cycles} connect, call and kill cycles over each transport ({python_version()}) …", flush=True)
    return asyncio.run(_cycles(cycles))


async def _cycles(cycles: int) -> list[str]:
    complaints = []
    for over in (over_stdio, over_http):
        outcome = await over(cycles)
        print(figures(outcome), flush=True)
        complaints += [f"{outcome.name}: left behind: {leak}" for leak in outcome.leaks]
        growth = outcome.after.memory_kib - outcome.before.memory_kib
        if growth > MAX_GROWTH_KIB:
            complaints.append(f"{outcome.name}: left behind: memory grew by {growth} KiB")
    return complaints
