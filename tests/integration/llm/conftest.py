"""Real HTTP between our adapters and mock providers that others wrote."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from io import StringIO

import pytest

from infrastructure.http.client import HttpClients
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.runtime.logs import configure_logging
from infrastructure.secrets.redaction import Redactor
from tests.integration.llm.strict.cloud import Cloud
from tests.integration.llm.strict.clouds import CloudTokens


@pytest.fixture
async def http() -> AsyncIterator[AiohttpProviders]:
    client = provider_http(HttpClients())
    yield client
    await client.aclose()


@pytest.fixture
async def tokens() -> AsyncIterator[CloudTokens]:
    async with CloudTokens().serving() as there:
        yield there


@pytest.fixture
async def cloud(http: AiohttpProviders, tokens: CloudTokens) -> AsyncIterator[Cloud]:
    async with AsyncExitStack() as stack:
        yield Cloud(stack, http, tokens)


@pytest.fixture
def debug_log() -> Iterator[StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log = StringIO()
    configure_logging(level="debug", form="json", redactor=Redactor(), stream=log)
    yield log
    root.handlers[:] = handlers
    root.setLevel(level)
