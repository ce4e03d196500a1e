"""Calls that wait for a client which comes back: what becomes of them where wake-ups are lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from pytest_mock import MockerFixture

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.ask_client import Conversation, Question
from application.gateway.calls.pending_calls import ContinuedCall, PendingCall, PendingCalls
from application.gateway.calls.request_states import RequestStates
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.ids import GatewayNoteId, ToolCallId
from domain.mcp.client_request import ClientRequest, ClientRequestKind
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.contract.test_gateway import a_session
from tests.doubles.gateway_notes import InMemoryGatewayNotes
from tests.doubles.state import InMemoryState
from tests.doubles.stored_gateway_session import StoredGatewaySession
from tests.doubles.surroundings import FixedClock, SequentialIds

BOX = SecretBox(["a key of the tests"])
SESSION = a_session()
CALL = ToolCallId("call_1")
WHERE = ClientRequest(key="where", kind=ClientRequestKind.ROOTS, params={})
ASKED: Question = (GatewayNoteId("gwn_1"), WHERE)


class Deaf:
    """Wake-ups of which none arrives: every wait ends by its time."""

    @asynccontextmanager
    async def subscribe(self, *topics: str) -> AsyncIterator["Deaf"]:
        yield self

    async def wait(self, timeout_s: float) -> bool:
        await asyncio.sleep(0)
        return False

    def wake(self, *topics: str) -> None:
        pass


@pytest.mark.requirement("A12", "F5")
async def test_a_call_whose_client_has_left_is_cancelled_though_nobody_was_woken(mocker: MockerFixture) -> None:
    state, clock, is_cancelled = InMemoryState(), FixedClock(), asyncio.Event()
    state.gateway_sessions[SESSION.id] = StoredGatewaySession(session=SESSION)
    notes, states = InMemoryGatewayNotes(state), RequestStates(box=BOX)
    calls = PendingCalls(
        notes=notes,
        states=states,
        wakeups=Deaf(),
        box=BOX,
        schemas=JsonSchemaValidator(),
        clock=clock,
        ids=SequentialIds(),
    )
    now = clock.now()
    await notes.leave(
        GatewayNote(
            id=ASKED[0],
            organization_id=SESSION.organization_id,
            session_id=SESSION.id,
            kind=GatewayNoteKind.QUESTION,
            call_id=CALL,
            sealed=BOX.encrypt(json.dumps(WHERE.as_json()).encode()),
            created_at=now,
            expires_at=SESSION.expires_at,
        )
    )

    async def making() -> GatewayAnswer:
        try:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    conversation = mocker.create_autospec(Conversation, instance=True)
    conversation.announced = asyncio.Queue()
    conversation.announced.put_nowait((ASKED,))
    pending = PendingCall(session=SESSION, call_id=CALL, name="echo", arguments={}, within_s=60.0)
    async with asyncio.timeout(10):
        asked = (await calls.begin(pending, conversation, making())).asked
        assert asked is not None
        again = ContinuedCall(
            session=SESSION,
            name="echo",
            arguments={},
            state=states.opened(SESSION, asked.request_state),
            responses={"where": {"roots": []}},
        )
        waiting = asyncio.create_task(calls.resume(again))
        for _ in range(10):
            await asyncio.sleep(0)
        [question] = await notes.of_call(SESSION.organization_id, SESSION.id, CALL)
        assert question.answer is not None
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await is_cancelled.wait()
