"""A service with an agent, and an identity provider for its people."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.consent import People
from tests.e2e.identity_provider import providing, register
from tests.e2e.service import a_turn, serving

TOOL = "mcp__watched__look"


@contextmanager
def a_front_door(home: Path) -> Iterator[People]:
    """The agent `reader` has the tool `TOOL`."""
    with serving(home) as service:
        service.watched_server("watched")
        model = service.script("reader", a_turn("Hello."))
        service.agent("reader", model, mcp_servers=["watched"])
        service.agent("other", model)
        service.call("POST", "/mcp-servers/watched/connect")
        with providing(service) as provider:
            yield People(service=service, provider=provider, registered=register(service, provider))
