"""Tavily: POST {base}/search with the key as a bearer token.

Format: https://docs.tavily.com/documentation/api-reference/endpoint/search (body, responses,
errors).
"""

import httpx

from infrastructure.native_tools.search.json_api import exchanged, listed
from infrastructure.native_tools.search.provider import MAX_RESULTS, SearchResult, results_of

_EXHAUSTED = frozenset({432, 433})
"""The plan's limit, and the limit of paid extra use."""


class TavilySearch:
    """`results` of one basic search; Tavily returns at most twenty."""

    def __init__(self, *, client: httpx.AsyncClient, base_url: str, api_key: str) -> None:
        self._client = client
        self._url = f"{base_url}/search"
        self._headers = {"accept-encoding": "gzip", "authorization": f"Bearer {api_key}"}

    @property
    def name(self) -> str:
        return "Tavily"

    async def search(self, query: str, *, max_results: int, timeout_s: float) -> tuple[SearchResult, ...]:
        body = {"query": query, "max_results": min(max_results, MAX_RESULTS), "search_depth": "basic"}
        request = self._client.build_request("POST", self._url, json=body, headers=self._headers)
        answer = await exchanged(self._client, request, timeout_s=timeout_s, exhausted=_EXHAUSTED)
        found = listed(answer, "results")
        return results_of(((hit.get("title"), hit.get("url"), hit.get("content")) for hit in found), max_results)

    async def close(self) -> None:
        await self._client.aclose()
