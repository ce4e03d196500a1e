"""Real HTTP between our adapters and mock providers that others wrote."""

from collections.abc import AsyncIterator

import pytest

from infrastructure.http.client import HttpClients
from infrastructure.http.kept_posts import KeptPosts


@pytest.fixture
async def http() -> AsyncIterator[KeptPosts]:
    client = HttpClients().create_posts()
    yield client
    await client.aclose()
