"""The search providers as they are today, over the internet: opt-in, for what no local server can
prove.

`DRAGOMAN_TEST_LIVE_SEARCH=1` searches with DuckDuckGo; `DRAGOMAN_TEST_BRAVE_API_KEY` and
`DRAGOMAN_TEST_TAVILY_API_KEY` with those.
"""

import os

import pytest
from pydantic import SecretStr

from infrastructure.http.proxies import DIRECT
from infrastructure.native_tools.search.providers import open_provider
from infrastructure.settings import Settings

BRAVE_KEY = os.environ.get("DRAGOMAN_TEST_BRAVE_API_KEY")
TAVILY_KEY = os.environ.get("DRAGOMAN_TEST_TAVILY_API_KEY")


def secret(key: str | None) -> SecretStr | None:
    return None if key is None else SecretStr(key)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            Settings(search_provider="duckduckgo"),
            id="duckduckgo",
            marks=pytest.mark.skipif(
                "DRAGOMAN_TEST_LIVE_SEARCH" not in os.environ, reason="opt in with DRAGOMAN_TEST_LIVE_SEARCH=1"
            ),
        ),
        pytest.param(
            Settings(search_provider="brave", brave_api_key=secret(BRAVE_KEY)),
            id="brave",
            marks=pytest.mark.skipif(BRAVE_KEY is None, reason="opt in with DRAGOMAN_TEST_BRAVE_API_KEY"),
        ),
        pytest.param(
            Settings(search_provider="tavily", tavily_api_key=secret(TAVILY_KEY)),
            id="tavily",
            marks=pytest.mark.skipif(TAVILY_KEY is None, reason="opt in with DRAGOMAN_TEST_TAVILY_API_KEY"),
        ),
    ],
)
async def test_the_live_provider_finds_what_everybody_finds(settings: Settings) -> None:
    provider = open_provider(settings, DIRECT)
    try:
        found = await provider.search("Model Context Protocol specification", max_results=5, timeout_s=30)
    finally:
        await provider.close()

    assert 0 < len(found) <= 5
    assert any("modelcontextprotocol" in hit.url for hit in found)
    assert all(hit.title and hit.url.startswith("http") for hit in found)
