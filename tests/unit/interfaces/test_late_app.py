"""Applications that are built at their first request."""

import httpx
import pytest
from litestar.types import ASGIApp, Receive, Scope, Send

from interfaces.late_app import with_late_app

pytestmark = pytest.mark.requirement("H4")


def answering(text: str) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text.encode(), "more_body": False})

    return app


class Loads:
    """Builds an application, and counts how often; the first attempts raise as often as told."""

    def __init__(self, *, failures: int = 0) -> None:
        self.count = 0
        self._failures = failures

    def __call__(self) -> ASGIApp:
        self.count += 1
        if self.count <= self._failures:
            raise ImportError("not there yet")
        return answering("late")


async def asked(app: ASGIApp, *paths: str) -> list[str]:
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # the same protocol, by another library's names
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        return [(await client.get(path)).text for path in paths]


async def test_other_paths_are_answered_without_building_it() -> None:
    loads = Loads()
    app = with_late_app(answering("early"), loads, below=["/chat"])

    assert await asked(app, "/", "/chats", "/v1/chat") == ["early"] * 3
    assert loads.count == 0


async def test_it_is_built_once_for_everything_below_its_paths() -> None:
    loads = Loads()
    app = with_late_app(answering("early"), loads, below=["/chat", "/talk"])

    assert await asked(app, "/chat", "/chat/", "/chat/1?a=b", "/talk/v1") == ["late"] * 4
    assert loads.count == 1


async def test_what_could_not_be_built_is_tried_again_by_the_next_request() -> None:
    loads = Loads(failures=1)
    app = with_late_app(answering("early"), loads, below=["/chat"])

    with pytest.raises(ImportError):
        await asked(app, "/chat")

    assert await asked(app, "/chat") == ["late"]


async def test_other_than_requests_go_to_the_first_application() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def unused() -> None:
        raise AssertionError

    routed = with_late_app(app, Loads(), below=["/chat"])
    await routed({"type": "lifespan", "path": "/chat"}, unused, unused)  # type: ignore[arg-type]
    assert seen == ["lifespan"]
