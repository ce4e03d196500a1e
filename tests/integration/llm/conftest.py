"""Real HTTP between our adapters and mock providers that others wrote."""

from collections.abc import AsyncIterator

import httpx
import pytest

from infrastructure.http_client import HttpClients


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncBaseTransport]:
    client = HttpClients().create_transport()
    yield client
    await client.aclose()
