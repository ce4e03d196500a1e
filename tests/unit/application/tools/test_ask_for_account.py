"""AskForAccount: calls whose server needs an account of a person. What runs do with it:
`test_resume_authorized_runs.py`."""

from dataclasses import replace

import pytest

from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from application.tools.ask_for_account import AskForAccount, CallWithoutAccount, without_account
from application.tools.call_context import ToolCallContext
from application.tools.ports import InputAwaited
from domain.ids import ToolCallId
from domain.mcp.elicitation import MAX_ROUNDS, InputRound
from domain.mcp.server import Credentials
from infrastructure.runtime.public_address import ListeningAddress
from tests.builders import ORG, START
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.mcp_builders import ACCOUNTS, a_person_server, a_secrets_server, an_on_behalf_server
from tests.people_builders import USER

pytestmark = pytest.mark.requirement("P3")

MISSING = McpFailure(McpFailureKind.NEEDS_AUTH, "none has been granted yet")
OF_PERSON = ToolCallContext(
    tool_call_id=ToolCallId("call_1"), scope=ConnectionScope(organization_id=ORG, person_id=USER), timeout_s=1.0
)
OF_KEY = replace(OF_PERSON, scope=ConnectionScope(organization_id=ORG))


async def test_other_failures_and_other_servers_are_not_concerned() -> None:
    lost = McpFailure(McpFailureKind.CONNECTION_LOST, "lost")
    assert not await ACCOUNTS.connected(lost, a_person_server(), OF_PERSON, None)
    assert not await ACCOUNTS.connected(MISSING, a_person_server(Credentials.ORGANIZATION), OF_PERSON, None)


async def test_the_person_is_asked_to_visit_their_page_and_earlier_answers_stay() -> None:
    before = InputRound(number=2, questions=(), answers={"colour": {"action": "accept"}}, request_state="kept")
    with pytest.raises(InputAwaited) as asked:
        await ACCOUNTS.connected(MISSING, a_person_server(), OF_PERSON, before)
    awaited = asked.value.awaited
    assert (awaited.number, awaited.answers, awaited.request_state) == (3, before.answers, "kept")
    assert awaited.current is not None
    assert awaited.current.url == "https://here/console/accounts?server=tickets"
    assert awaited.current.is_for_account


@pytest.mark.requirement("P4")
async def test_for_a_server_on_their_behalf_the_person_is_asked_to_sign_in_again() -> None:
    with pytest.raises(InputAwaited) as asked:
        await ACCOUNTS.connected(MISSING, an_on_behalf_server(), OF_PERSON, None)
    question = asked.value.awaited.questions[0]
    assert "Sign in again" in question.message
    assert question.url == "https://here/console/accounts?server=tickets"


async def test_for_a_server_that_takes_secrets_the_person_is_asked_for_those() -> None:
    with pytest.raises(InputAwaited) as asked:
        await ACCOUNTS.connected(MISSING, a_secrets_server("token", "user"), OF_PERSON, None)
    question = asked.value.awaited.questions[0]
    assert ("token, user" in question.message, question.is_for_account) == (True, True)
    assert question.url == "https://here/console/accounts?server=tickets"


async def test_without_an_address_the_page_is_named_by_its_path() -> None:
    accounts = AskForAccount(address=ListeningAddress(None), authorizer=InMemoryAuthorizer(expires_at=START))
    with pytest.raises(InputAwaited) as asked:
        await accounts.connected(MISSING, a_person_server(), OF_PERSON, None)
    assert asked.value.awaited.questions[0].url == "/console/accounts?server=tickets"


@pytest.mark.parametrize(
    ("context", "given", "code"),
    [
        (OF_KEY, None, "person_required"),
        (OF_PERSON, InputRound(number=MAX_ROUNDS, questions=()), "mcp_input_endless"),
    ],
    ids=["a key", "asked too often"],
)
async def test_a_call_that_nobody_can_answer_for_fails(
    context: ToolCallContext, given: InputRound | None, code: str
) -> None:
    with pytest.raises(CallWithoutAccount) as refused:
        await ACCOUNTS.connected(MISSING, a_person_server(), context, given)
    assert refused.value.result.error_code == code


async def test_answers_without_one_of_ours_are_sent_as_they_are() -> None:
    given = InputRound(number=1, questions=(), answers={"colour": {"action": "accept"}})
    assert without_account(given) is given
    assert without_account(None) is None
