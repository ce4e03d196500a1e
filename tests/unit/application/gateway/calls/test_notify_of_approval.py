"""NotifyOfApproval: what a client is shown while its call waits for somebody else, and how that
ends."""

import asyncio
import json
from dataclasses import dataclass, field, replace

import pytest
from pytest_mock import MockerFixture

from application.approvals.ports import ApprovalStore, session_approvals_topic
from application.gateway.calls.ask_client import AnswerLimits, AskableClient, AskClient, Question
from application.gateway.calls.notify_of_approval import NotifyOfApproval
from application.gateway.ports import AskedCall, GatewayNotes
from domain.approvals.approval import ApprovalState
from domain.ids import GatewayNoteId
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.gateway_notes import InMemoryGatewayNotes
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import (
    a_gateway_approval,
    a_gateway_session,
    a_gateway_toolset,
    a_state_with,
    a_waiting_call,
)
from tests.refusals import refused, storage_away

SESSION, APPROVAL = a_gateway_session(), a_gateway_approval()
CALL = a_waiting_call(APPROVAL)
BOX = SecretBox(["a key of the tests"])


@dataclass
class Person:
    """Sits at a client whose call waits. `answers` is what is done with the form; `decides`:
    somebody approves meanwhile."""

    answers: str | None = None
    decides: bool = False
    leaves: bool = False
    answer_s: float = 600.0
    state: InMemoryState = field(default_factory=lambda: a_state_with(SESSION, CALL))
    shown: list[ClientRequest] = field(default_factory=list)
    taken_back: list[GatewayNoteId] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state.approvals[APPROVAL.id] = APPROVAL
        self.wakeups = InProcessWakeups()
        self.notes: GatewayNotes = InMemoryGatewayNotes(self.state)
        self.approvals: ApprovalStore = InMemoryApprovalStore(self.state)
        self.client = AskableClient(capabilities={"elicitation": {}}, ask=self._ask, take_back=self._take_back)

    @property
    def notifying(self) -> NotifyOfApproval:
        asking = AskClient(
            notes=self.notes,
            wakeups=self.wakeups,
            box=BOX,
            schemas=JsonSchemaValidator(),
            clock=FixedClock(),
            ids=SequentialIds(),
            limits=AnswerLimits(answer_s=self.answer_s),
        )
        return NotifyOfApproval(asking=asking, approvals=self.approvals, wakeups=self.wakeups)

    async def is_over(self) -> bool:
        """Whether the approval ended while the client waited."""
        waiting = AskedCall(call=CALL, approval=APPROVAL)
        async with asyncio.timeout(4):  # sooner than a look without a wake-up
            return await self.notifying.execute(SESSION, waiting, self.client, guard=a_gateway_toolset().guard)

    async def _ask(self, questions: tuple[Question, ...]) -> None:
        [(note_id, request)] = questions
        self.shown.append(request)
        if self.answers is not None:
            answer = ClientAnswer(result={"action": self.answers})
            sealed = {note_id: BOX.encrypt(json.dumps(answer.as_json()).encode())}
            await self.notes.answer(SESSION.organization_id, SESSION.id, sealed, at=APPROVAL.created_at)
        if self.decides:
            self.state.approvals[APPROVAL.id] = replace(APPROVAL, state=ApprovalState.APPROVED)
            self.wakeups.wake(session_approvals_topic(SESSION.id))
        if self.leaves:
            self.client.left.set()

    async def _take_back(self, note_ids: tuple[GatewayNoteId, ...]) -> None:
        self.taken_back += note_ids


@pytest.mark.requirement("C3", "F5")
async def test_the_form_names_the_approval_and_has_nothing_to_fill_in() -> None:
    person = Person(answers="decline")

    await person.is_over()

    [form] = person.shown
    assert APPROVAL.id in str(form.params["message"])
    assert form.params["requestedSchema"] == {"type": "object", "properties": {}}


@pytest.mark.requirement("C3", "F5")
@pytest.mark.parametrize("answer", ["accept", "decline", "cancel"])
async def test_an_answer_to_the_form_decides_nothing(answer: str) -> None:
    person = Person(answers=answer, leaves=True)

    assert not await person.is_over()
    assert person.state.approvals[APPROVAL.id] == APPROVAL


@pytest.mark.requirement("F5")
async def test_whoever_agrees_waits_until_somebody_has_decided() -> None:
    assert await Person(answers="accept", decides=True).is_over()


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "person",
    [Person(answers="decline"), Person(answers="cancel"), Person(leaves=True), Person(answer_s=0.0)],
    ids=["declines", "dismisses", "goes away", "says nothing"],
)
async def test_whoever_does_not_agree_does_not_wait(person: Person) -> None:
    assert not await person.is_over()


@pytest.mark.requirement("F5")
async def test_a_form_that_is_open_when_somebody_decides_is_taken_back() -> None:
    person = Person(decides=True)

    assert await person.is_over()

    assert len(person.taken_back) == 1
    assert person.state.gateway_sessions[SESSION.id].notes == {}


@pytest.mark.parametrize(
    ("capabilities", "can_notify"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({}, False),
    ],
)
async def test_clients_with_forms_can_be_told(capabilities: JsonObject, can_notify: bool) -> None:
    person = Person()
    assert person.notifying.can_notify(replace(person.client, capabilities=capabilities)) is can_notify


async def test_a_client_that_is_not_asked_while_its_call_waits_cannot_be_told() -> None:
    notifying = Person().notifying
    assert not notifying.can_notify(None)
    assert not notifying.can_notify(AskableClient(capabilities={"elicitation": {}}))


async def test_a_form_that_cannot_be_stored_is_not_shown(mocker: MockerFixture) -> None:
    person = Person()
    person.notes = mocker.create_autospec(GatewayNotes, instance=True)
    person.notes.leave.side_effect = storage_away()

    with refused("storage_unavailable"):
        await person.is_over()

    assert person.shown == []


async def test_an_approval_that_cannot_be_read_has_not_ended(mocker: MockerFixture) -> None:
    person = Person()
    person.approvals = mocker.create_autospec(ApprovalStore, instance=True)
    person.approvals.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await person.is_over()
