"""The port of search providers, and what their adapters share: results and failures in our own words."""

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
    """One page that was found."""

    title: str
    url: str
    snippet: str


class SearchFault(StrEnum):
    """Why there are no results."""

    RATE_LIMITED = "rate_limited"
    """Too many searches in too short a time, or more than the plan has."""
    REFUSED = "refused"
    """The provider does not know the key, or forbids it this."""
    INVALID_QUERY = "invalid_query"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    """Not reached, failed, or answered with what is no answer."""


class SearchError(Exception):
    """A search without an answer. `detail` is for the log; no text of the provider's is in it."""

    def __init__(self, fault: SearchFault, detail: str = "", *, retry_after_s: int | None = None) -> None:
        super().__init__(f"{fault.value}: {detail}")
        self.fault = fault
        self.detail = detail
        self.retry_after_s = retry_after_s


class SearchProvider(Protocol):
    """Searches the web."""

    @property
    def name(self) -> str:
        """As people know it."""
        ...

    async def search(self, query: str, *, max_results: int, timeout_s: float) -> tuple[SearchResult, ...]:
        """At most `max_results` results, the best first; none is an answer too. Raises SearchError. Cancellation stops
        the work."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


def results_of(found: Iterable[tuple[object, object, object]], max_results: int) -> tuple[SearchResult, ...]:
    """Results from titles, URLs and snippets as a provider sent them: plain text on one line, web addresses only, each
    once."""
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
