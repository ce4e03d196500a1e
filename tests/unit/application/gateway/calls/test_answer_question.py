"""AnswerGatewayQuestion: who may answer what a server asks, when, and what the server is told."""

import json
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.calls.answer_question import AnswerGatewayQuestion, AnswerGatewayQuestionCommand
from application.gateway.ports import GatewayNotes, call_topic
from application.system.wakeups import Wakeups
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.ids import GatewayNoteId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import START, after
from tests.doubles.gateway_notes import InMemoryGatewayNotes
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_call, a_gateway_session, a_state_with
from tests.refusals import refused, storage_away

BOX = SecretBox(["a key of the tests"])
SESSION, CALL = a_gateway_session(), a_gateway_call()
FORM: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASKED = ClientRequest(
    key="where", kind=ClientRequestKind.ELICITATION, params={"message": "Where?", "requestedSchema": FORM}
)
ROOTS = ClientRequest(key="roots", kind=ClientRequestKind.ROOTS, params={})
PARIS: JsonObject = {"action": "accept", "content": {"city": "Paris"}}


def a_question(request: ClientRequest = ASKED) -> GatewayNote:
    return GatewayNote(
        id=GatewayNoteId("gwn_1"),
        organization_id=SESSION.organization_id,
        session_id=SESSION.id,
        kind=GatewayNoteKind.QUESTION,
        call_id=CALL.id,
        sealed=BOX.encrypt(json.dumps(request.as_json()).encode()),
        created_at=START,
        expires_at=after(600),
    )


class Ports:
    """A session whose client was asked where, in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION, CALL)
        self.state.gateway_sessions[SESSION.id].notes[a_question().id] = a_question()
        self.notes: GatewayNotes = InMemoryGatewayNotes(self.state)
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.clock = FixedClock()

    async def answer(
        self,
        result: JsonValue = None,
        *,
        refusal: str | None = None,
        session: GatewaySession = SESSION,
        question_id: str = "gwn_1",
    ) -> None:
        answering = AnswerGatewayQuestion(
            notes=self.notes, wakeups=self.wakeups, box=BOX, schemas=JsonSchemaValidator(), clock=self.clock
        )
        await answering.execute(
            AnswerGatewayQuestionCommand(session=session, question_id=question_id, result=result, refusal=refusal)
        )

    @property
    def answered(self) -> ClientAnswer | None:
        """What the process that waits for the answer will find."""
        sealed = self.state.gateway_sessions[SESSION.id].notes[a_question().id].answer
        return None if sealed is None else ClientAnswer.from_json(json.loads(BOX.decrypt(sealed)))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("F5")
async def test_an_answer_that_fits_is_left_encrypted_for_the_call_which_is_woken(ports: Ports) -> None:
    await ports.answer(PARIS)

    assert ports.answered == ClientAnswer(result=PARIS)
    assert b"Paris" not in (ports.state.gateway_sessions[SESSION.id].notes[a_question().id].answer or b"")
    ports.wakeups.wake.assert_called_once_with(call_topic(CALL.id))


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "wrong",
    [{"action": "accept", "content": {"city": 7}}, {"action": "perhaps"}, "Paris"],
    ids=["form", "word", "text"],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_server_is_told_that_there_is_none(
    ports: Ports, wrong: JsonValue
) -> None:
    with refused("client_answer_invalid"):
        await ports.answer(wrong)

    assert ports.answered == ClientAnswer(result={"action": "cancel"})
    ports.wakeups.wake.assert_called_once_with(call_topic(CALL.id))


async def test_a_form_that_the_client_refuses_is_declined(ports: Ports) -> None:
    await ports.answer(refusal="No forms here.")
    assert ports.answered == ClientAnswer(result={"action": "decline"})


async def test_why_a_client_refuses_is_told_cleaned_and_cut(ports: Ports) -> None:
    ports.state.gateway_sessions[SESSION.id].notes[a_question().id] = a_question(ROOTS)

    await ports.answer(refusal="No\x00 roots " + "x" * 9_000)

    assert ports.answered is not None
    assert ports.answered.refusal.startswith("No roots xxx")
    assert len(ports.answered.refusal) < 1_000


@pytest.mark.requirement("F5")
async def test_a_question_is_answered_once(ports: Ports) -> None:
    await ports.answer(PARIS)

    with refused("question_not_found"):
        await ports.answer({"action": "decline"})

    assert ports.answered == ClientAnswer(result=PARIS)
    ports.wakeups.wake.assert_called_once()


@pytest.mark.requirement("F5")
async def test_a_question_whose_time_is_up_is_not_answered(ports: Ports) -> None:
    ports.clock.advance(600)

    with refused("question_not_found"):
        await ports.answer(PARIS)

    assert ports.answered is None
    ports.wakeups.wake.assert_not_called()


@pytest.mark.requirement("F5")
async def test_another_session_does_not_answer(ports: Ports) -> None:
    with refused("question_not_found"):
        await ports.answer(PARIS, session=a_gateway_session(2))

    assert ports.answered is None


@pytest.mark.parametrize("kind", [GatewayNoteKind.CANCELLATION, GatewayNoteKind.OUTCOME])
async def test_a_note_that_asks_nothing_is_not_answered(ports: Ports, kind: GatewayNoteKind) -> None:
    ports.state.gateway_sessions[SESSION.id].notes[a_question().id] = replace(a_question(), kind=kind)

    with refused("question_not_found"):
        await ports.answer(PARIS)

    assert ports.answered is None


async def test_nobody_is_woken_for_an_answer_that_cannot_be_stored(ports: Ports, mocker: MockerFixture) -> None:
    notes = mocker.create_autospec(GatewayNotes, instance=True)
    notes.get.return_value = a_question()
    notes.answer.side_effect = storage_away()
    ports.notes = notes

    with refused("storage_unavailable"):
        await ports.answer(PARIS)

    ports.wakeups.wake.assert_not_called()
