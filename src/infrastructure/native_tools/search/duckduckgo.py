"""Keyless search: DuckDuckGo through the ddgs library, in a separate process for each search
(`ddgs_process.py`)."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress

from infrastructure.native_tools.search.provider import SearchError, SearchFault, SearchResult, results_of

_SEARCH = ("-I", "-m", "dragoman.run_module", "infrastructure.native_tools.search.ddgs_process")


class DuckDuckGoSearch:
    """At most `max_concurrent` searches at a time; others wait within their own timeout."""

    def __init__(self, *, base_url: str, max_concurrent: int = 4, proxy: str | None = None) -> None:
        self._base_url = base_url
        self._proxy = proxy
        self._slots = asyncio.Semaphore(max_concurrent)

    @property
    def name(self) -> str:
        return "DuckDuckGo"

    async def search(self, query: str, *, max_results: int, timeout_s: float) -> tuple[SearchResult, ...]:
        """The process is killed at the deadline, or when the search is cancelled."""
        asked = json.dumps(
            {"query": query, "base_url": self._base_url, "timeout_s": timeout_s, "proxy": self._proxy}
        ).encode()
        timeout = asyncio.timeout(timeout_s)
        try:
            async with timeout, self._slots:
                answer = await _answered(asked)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise SearchError(SearchFault.TIMEOUT) from error
        except OSError as error:
            raise SearchError(SearchFault.UNAVAILABLE, "the process cannot be started") from error
        return _read(answer, max_results)

    async def close(self) -> None:
        """Nothing stays open between searches."""


async def _answered(asked: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *_SEARCH, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/", start_new_session=True
    )
    try:
        answer, _ = await process.communicate(asked)
    finally:
        await _ended(process)
    return answer


async def _ended(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _read(answer: bytes, max_results: int) -> tuple[SearchResult, ...]:
    try:
        said = json.loads(answer)
    except ValueError as error:
        raise SearchError(SearchFault.UNAVAILABLE, "the process ended without an answer") from error
    if "fault" in said:
        raise SearchError(SearchFault(said["fault"]), said["detail"])
    return results_of(((title, url, snippet) for title, url, snippet in said["results"]), max_results)
