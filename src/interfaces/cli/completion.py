"""What the shell completes: names and ids of a running service. Nothing is opened or created for
it."""

from collections.abc import Callable

from interfaces.cli.api import listed, path_to
from interfaces.cli.failures import CommandFailure

_TIMEOUT_S = 2.0
_OFFERED = 50


def completed(path: str, field: str = "id", *, described_by: str = "status") -> Callable[[str], list[tuple[str, str]]]:
    """A completion with this field of a list, newest first; described by another of its fields."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        import asyncio

        try:
            return asyncio.run(asyncio.wait_for(_entries(path, field, described_by, incomplete), _TIMEOUT_S))
        except (CommandFailure, TimeoutError):
            return []

    return complete


async def _entries(path: str, field: str, described_by: str, incomplete: str) -> list[tuple[str, str]]:
    from interfaces.cli.connecting import connected_to_running

    async with connected_to_running() as api:
        page = await listed(api, path_to(path), limit=None if field != "id" else _OFFERED)
    data = page["data"]
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    found = [(str(entry.get(field)), str(entry.get(described_by) or "")) for entry in entries]
    return [entry for entry in found if entry[0].startswith(incomplete)]
