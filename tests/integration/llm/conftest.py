"""Real HTTP between our adapters and mock providers that others wrote."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.http.client import HttpClients
from infrastructure.llm.provider_http import AiohttpProviders, provider_http


@pytest.fixture
async def http() -> AsyncIterator[AiohttpProviders]:
    client = provider_http(HttpClients())
    yield client
    await client.aclose()
