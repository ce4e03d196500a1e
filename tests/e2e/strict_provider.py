"""A strict model provider beside a service, which talks to it as to a vendor."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.service import Service
from tests.integration.llm.strict.provider import Family, Json, Refusal, StrictProvider
from tests.integration.llm.strict.responses import StrictResponses

KEY = "sk-of-the-strict-provider"
UNAVAILABLE = Refusal(status=503, body={"error": {"message": "The server is overloaded.", "type": "server_error"}})


class FailingResponses(StrictResponses):
    """The Responses API. The models named in `down` are unavailable."""

    def __init__(self) -> None:
        super().__init__()
        self.down: frozenset[str] = frozenset()

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None:
        return UNAVAILABLE if body["model"] in self.down else super().refusal(path, body, key)


@contextmanager
def strict_provider(family: Family, *, prefix: str = "/v1") -> Iterator[StrictProvider]:
    """It listens on a thread of its own until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    provider = StrictProvider(family, prefix=prefix)
    opened = provider.serving()
    asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(30)
    try:
        yield provider
    finally:
        asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def watched_agent(service: Service, there: StrictProvider, **settings: object) -> Path:
    """The provider `acme`, and an agent `worker` on its model with the watched server; the server's
    log."""
    provider = {"name": "acme", "kind": "openai", "wire": "responses", "base_url": there.url, "api_key": KEY}
    service.call("POST", "/model-providers", provider)
    log = service.watched_server("watched", trusted=True)
    service.agent("worker", "acme:gpt-test", mcp_servers=["watched"], **settings)
    return log
