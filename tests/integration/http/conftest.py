"""A running service for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.http.service import Service, running_service


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with running_service() as running:
        yield running
