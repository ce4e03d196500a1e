"""internet_search: titles, addresses and snippets of pages for a query. Below: one search provider
(`search/`)."""

import logging
from collections.abc import Callable

from application.system.lazy import LazyClosable
from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.native_tools.search.provider import (
    MAX_QUERY,
    MAX_RESULTS,
    SearchError,
    SearchFault,
    SearchProvider,
)

logger = logging.getLogger(__name__)

_DEFAULT_RESULTS = 8
_SHARE = 0.95
"""Share of the call's time for the search. The rest is for the error message."""

INTERNET_SEARCH = Tool(
    name=ToolType.INTERNET_SEARCH.value,
    type=ToolType.INTERNET_SEARCH,
    description=(
        "Search the web. Returns the title, URL and a snippet of the pages found, the best first. Snippets are short:"
        " read a page itself before relying on what it says."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to search for, in a few words.",
                "minLength": 1,
                "maxLength": MAX_QUERY,
                "pattern": r"\S",
            },
            "max_results": {
                "type": "integer",
                "description": f"How many results to return at most; {_DEFAULT_RESULTS} if absent.",
                "minimum": 1,
                "maximum": MAX_RESULTS,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    repeatable=True,  # it reads only
)


class InternetSearchTool:
    """Results are JSON; failures of the provider get our own messages. `open_provider` loads the
    provider's client at the first call."""

    def __init__(self, *, open_provider: Callable[[], SearchProvider]) -> None:
        self._provider = LazyClosable(open_provider)

    @property
    def tool(self) -> Tool:
        return INTERNET_SEARCH

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """`{"results": [{"title", "url", "snippet"}]}`. Raises NativeToolError `search_…`."""
        query, max_results = arguments["query"], arguments.get("max_results", _DEFAULT_RESULTS)
        if not isinstance(query, str) or not isinstance(max_results, int | float):
            raise TypeError("arguments are validated before a tool runs")
        provider = await self._provider.warm()
        timeout_s = context.timeout_s * _SHARE
        try:
            found = await provider.search(query.strip(), max_results=int(max_results), timeout_s=timeout_s)
        except SearchError as error:
            if error.fault in {SearchFault.REFUSED, SearchFault.UNAVAILABLE}:
                logger.warning("search provider failed", extra={"provider": provider.name, "fault": str(error)})
            sentence = _sentence(error, provider.name, context.timeout_s)
            raise NativeToolError(f"search_{error.fault.value}", sentence) from error
        return NativeToolOutput(
            value={"results": [{"title": hit.title, "url": hit.url, "snippet": hit.snippet} for hit in found]}
        )

    async def close(self) -> None:
        await self._provider.close()


def _sentence(error: SearchError, provider: str, timeout_s: float) -> str:
    match error.fault:
        case SearchFault.RATE_LIMITED:
            again = "later" if error.retry_after_s is None else f"in {error.retry_after_s} seconds"
            return f"{provider} allows no more searches at the moment. Try again {again}."
        case SearchFault.REFUSED:
            return f"{provider} refused the search; its API key has to be checked by an operator."
        case SearchFault.INVALID_QUERY:
            return f"{provider} does not take this query. Use fewer and simpler words."
        case SearchFault.TIMEOUT:
            return f"{provider} did not answer within {timeout_s:g} seconds."
        case SearchFault.UNAVAILABLE:
            return f"{provider} cannot be reached or answers with errors. Try again later."
