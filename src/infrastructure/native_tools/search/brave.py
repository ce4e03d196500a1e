"""Brave Search API: GET {base}/res/v1/web/search with the key in X-Subscription-Token.

Format: https://api-dashboard.search.brave.com/app/documentation/web-search (query, responses,
errors).
"""

import httpx

from infrastructure.native_tools.search.json_api import exchanged, listed
from infrastructure.native_tools.search.provider import MAX_RESULTS, SearchError, SearchFault, SearchResult, results_of

_MAX_WORDS = 50
"""Brave's own limit, besides 400 characters."""


class BraveSearch:
    """`web.results` of one request; Brave returns at most twenty."""

    def __init__(self, *, client: httpx.AsyncClient, base_url: str, api_key: str) -> None:
        self._client = client
        self._url = f"{base_url}/res/v1/web/search"
        self._headers = {"accept": "application/json", "accept-encoding": "gzip", "x-subscription-token": api_key}

    @property
    def name(self) -> str:
        return "Brave Search"

    async def search(self, query: str, *, max_results: int, timeout_s: float) -> tuple[SearchResult, ...]:
        if len(query.split()) > _MAX_WORDS:
            raise SearchError(SearchFault.INVALID_QUERY, "more than 50 words")
        request = self._client.build_request(
            "GET",
            self._url,
            params={
                "q": query,
                "count": min(max_results, MAX_RESULTS),
                "result_filter": "web",
                "text_decorations": "false",
            },
            headers=self._headers,
        )
        answer = await exchanged(self._client, request, timeout_s=timeout_s)
        found = listed(answer, "web", "results")
        return results_of(((hit.get("title"), hit.get("url"), hit.get("description")) for hit in found), max_results)

    async def close(self) -> None:
        await self._client.aclose()
