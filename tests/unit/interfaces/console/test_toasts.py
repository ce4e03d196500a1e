"""What is said once something was changed: each action of the console has a sentence, or shows its
outcome itself."""

from typing import Any
from unittest.mock import AsyncMock

import pytest

from interfaces.console.app import console_routes
from interfaces.console.toasts import ELSEWHERE, ON_THE_PAGE, SENTENCES, saying

pytestmark = pytest.mark.requirement("U6")


def test_each_action_says_that_it_was_done_or_shows_it_or_changes_nothing() -> None:
    actions = {
        path.replace(":str", "") for route in console_routes() if "POST" in route.http_methods for path in route.paths
    }
    assert SENTENCES.keys() | ON_THE_PAGE | ELSEWHERE == actions
    assert len(SENTENCES) + len(ON_THE_PAGE) + len(ELSEWHERE) == len(actions)


def test_sentences_are_of_letters_that_a_header_may_have() -> None:
    assert [each for each in SENTENCES.values() if not each.isascii() or not each.endswith(".")] == []


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (200, {}, "The role is saved."),
        (200, {"Toast": "Something else."}, "Something else."),
        (422, {}, None),
        (200, {"HX-Retarget": "#checked"}, None),
        (200, {"HX-Redirect": "/console/sign-in?next=x"}, None),
    ],
)
async def test_only_what_was_done_is_said_to_be_done(status: int, headers: dict[str, str], said: str | None) -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope: Any = {"type": "http", "method": "POST", "path_template": "/console/people/roles/{role}"}
    await saying(answers)(scope, AsyncMock(), send)
    assert dict(sent[0]["headers"]).get(b"toast") == (None if said is None else said.encode())
