"""A running service for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.http.service import House, Service


@pytest.fixture(scope="session")
def house() -> House:
    return House()


@pytest.fixture
async def service(house: House) -> AsyncIterator[Service]:
    async with house.service() as running:
        yield running
