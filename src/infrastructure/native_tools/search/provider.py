"""The port of search providers, and their results and failures."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

MAX_RESULTS = 20
MAX_QUERY = 400
_MAX_TITLE, _MAX_SNIPPET, _MAX_URL = 300, 1_000, 2_000
_TAG = re.compile(r"<[^<>]{1,200}>")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    title: str
    url: str
    snippet: str


class SearchFault(StrEnum):
    """Why a search has no results."""

    RATE_LIMITED = "rate_limited"
    """Too many searches in a short time, or more than the plan includes."""
    REFUSED = "refused"
    """The provider rejects the key."""
    INVALID_QUERY = "invalid_query"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    """Not reachable, failed, or an unusable response."""


class SearchError(Exception):
    """A failed search. `detail` is for the log and contains no text of the provider."""

    def __init__(self, fault: SearchFault, detail: str = "", *, retry_after_s: int | None = None) -> None:
        super().__init__(f"{fault.value}: {detail}")
        self.fault = fault
        self.detail = detail
        self.retry_after_s = retry_after_s


class SearchProvider(Protocol):
    @property
    def name(self) -> str:
        """The display name."""

    async def search(self, query: str, *, max_results: int, timeout_s: float) -> tuple[SearchResult, ...]:
        """At most `max_results` results, best first, perhaps none. Cancellation stops the work.
        Raises SearchError."""

    async def close(self) -> None:
        """Close every connection."""


def results_of(found: Iterable[tuple[object, object, object]], max_results: int) -> tuple[SearchResult, ...]:
    """Results from a provider's titles, URLs and snippets: plain text on one line, only web
    addresses, no duplicates."""
    results: dict[str, SearchResult] = {}
    for title, url, snippet in found:
        if len(results) == max_results:
            break
        if isinstance(url, str) and _is_web_address(url) and url not in results:
            results[url] = SearchResult(
                title=_plain(title, _MAX_TITLE) or url, url=url, snippet=_plain(snippet, _MAX_SNIPPET)
            )
    return tuple(results.values())


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= _MAX_URL


def _plain(text: object, limit: int) -> str:
    if not isinstance(text, str):
        return ""
    return _SPACES.sub(" ", html.unescape(_TAG.sub("", text[: limit * 4]))).strip()[:limit]
