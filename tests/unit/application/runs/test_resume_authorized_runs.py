"""ResumeAuthorizedRuns: runs that wait until their person connects an account, and continue on any
worker after it."""

from collections.abc import Callable

import pytest
from pytest_mock import MockerFixture

from application.mcp.authorization import Account
from application.mcp.ports import McpFailure, McpFailureKind, McpReply
from application.runs.resume_run import ClientToolResult, ResumeRunCommand
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, RunId, UserId
from domain.json_value import JsonValue
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.elicitation import Elicitation
from domain.mcp.server import Credentials, McpServerKind
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.refusals import refused
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent
from tests.unit.application.runs.test_calls_that_ask import COLOUR, RED, asking

pytestmark = pytest.mark.requirement("P3")

ANN, BEN = UserId("usr_ann"), UserId("usr_ben")
MISSING = McpFailure(McpFailureKind.NEEDS_AUTH, "none has been granted yet")


class Tickets:
    """A server that is used with each person's account, and a run of its tool."""

    def __init__(self, answer: Callable[[Invocation], McpReply] = lambda _: text_reply("3 tickets")) -> None:
        self.connected: set[UserId] = set()
        self.answer = answer
        self.on_refusal: Callable[[UserId], None] = lambda person: None
        turns = (asks("mcp__s__list"), says("Done."), asks("mcp__s__list"), says("Done."))
        self.harness = RunHarness(
            turns, servers={"s": InMemoryMcpServer(tools={"list": InMemoryTool(answer=self._list)})}
        )
        self.harness.change_server(
            "s",
            kind=McpServerKind.HTTP,
            command=None,
            args=(),
            url="https://tickets.example/mcp",
            auth=AuthorizationCodeAuth(),
            credentials=Credentials.PERSON,
            elicitation=ElicitationPolicy.ASK,
        )

    async def _list(self, invocation: Invocation) -> McpReply:
        person = self.harness.connections.calls[-1].scope.person_id
        if person not in self.connected:
            if person is not None:
                self.on_refusal(person)
            raise MISSING
        return self.answer(invocation)

    async def run_of(self, actor: str) -> RunId:
        """A run of a person or a key, executed until it ends or waits."""
        principal = Principal(organization_id=ORG, key_id=ApiKeyId(actor), role=Role.RUNNER)
        await self.harness.warm_up()
        run_id = await self.harness.start("Which tickets are mine?", principal=principal)
        await self.harness.worker.execute(run_id)
        return run_id

    async def connect(self, person: UserId, slug: str = "s") -> None:
        self.connected.add(person)
        await self.harness.accounts.resuming.connected(self.harness.server(slug).acting_for(person))

    async def answer_as(self, actor: str, run_id: RunId, answer: JsonValue) -> None:
        [entry] = self.harness.ledger(run_id)
        principal = Principal(organization_id=ORG, key_id=ApiKeyId(actor), role=Role.ADMIN)
        given = (ClientToolResult(tool_call_id=entry.id, result=answer),)
        command = ResumeRunCommand(principal=principal, run_id=run_id, tool_results=given)
        await self.harness.resume_run.execute(command)

    def question(self, run_id: RunId) -> Elicitation:
        [use] = self.harness.run(run_id).pending
        assert use.elicitation is not None
        return use.elicitation


async def test_a_run_waits_with_a_link_and_goes_on_at_another_worker_once_its_person_has_connected() -> None:
    tickets = Tickets()
    harness = tickets.harness
    run_id = await tickets.run_of(ANN)
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert tickets.question(run_id).url == "https://here/console/accounts?server=s"
    await tickets.connect(ANN)
    assert (harness.run(run_id).status, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await harness.new_worker().execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == ["3 tickets"]
    assert [recorded.call.input_responses for recorded in harness.connections.calls] == [None, None]
    assert_consistent(harness, run_id)


async def test_a_consent_of_another_person_continues_nothing() -> None:
    tickets = Tickets()
    run_id = await tickets.run_of(ANN)
    await tickets.connect(BEN)
    assert tickets.harness.run(run_id).status is RunStatus.REQUIRES_ACTION


async def test_a_run_of_a_key_goes_on_without_the_tool_and_says_that_a_person_must_start_it() -> None:
    tickets = Tickets()
    run_id = await tickets.run_of("key_ci")
    assert tickets.harness.run(run_id).status is RunStatus.COMPLETED
    [entry] = tickets.harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "person_required"
    assert "a person who signed in must start this" in entry.result.text


async def test_a_person_who_declines_is_asked_no_more_in_this_call() -> None:
    tickets = Tickets()
    run_id = await tickets.run_of(ANN)
    [entry] = tickets.harness.ledger(run_id)
    await tickets.harness.resume(run_id, {entry.id: {"action": "decline"}})
    await tickets.harness.worker.execute(run_id)
    [entry] = tickets.harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "account_declined"


async def test_an_answer_without_a_consent_asks_again() -> None:
    tickets = Tickets()
    run_id = await tickets.run_of(ANN)
    [entry] = tickets.harness.ledger(run_id)
    await tickets.harness.resume(run_id, {entry.id: {"action": "accept"}})
    await tickets.harness.worker.execute(run_id)
    assert tickets.question(run_id).request_id == "2.dragoman/account"


async def test_answers_that_the_server_got_before_are_sent_again_and_ours_never() -> None:
    def answer(invocation: Invocation) -> McpReply:
        if invocation.input_responses is None:
            return asking(COLOUR, state="kept")
        return text_reply(f"{invocation.request_state}: {dict(invocation.input_responses)}")

    tickets = Tickets(answer)
    tickets.connected.add(ANN)
    run_id = await tickets.run_of(ANN)
    tickets.connected.clear()  # the grant ends while the person thinks
    await tickets.answer_as(ANN, run_id, RED)
    await tickets.harness.worker.execute(run_id)
    assert tickets.question(run_id).is_for_account
    await tickets.connect(ANN)
    await tickets.harness.worker.execute(run_id)
    assert tickets.harness.results() == [f"kept: {{'colour': {RED}}}"]


async def test_others_decline_a_form_of_the_persons_account_but_do_not_fill_it_in() -> None:
    tickets = Tickets(lambda _: asking(COLOUR))
    tickets.connected.add(ANN)
    run_id = await tickets.run_of(ANN)
    for other in (BEN, "key_ops"):
        with refused("account_not_yours"):
            await tickets.answer_as(other, run_id, RED)
    assert tickets.harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    await tickets.answer_as(BEN, run_id, {"action": "decline"})
    assert tickets.harness.run(run_id).status is RunStatus.QUEUED


def account_of(tickets: Tickets, person: UserId) -> None:
    """The account is stored, and nobody is told."""
    harness = tickets.harness
    account = Account(issuer="https://auth.example.org", scope=None, renewed_at=harness.clock.now())
    harness.accounts.authorizer.accounts[harness.server("s").id, person] = account


async def test_a_consent_between_the_refusal_and_the_wait_is_noticed() -> None:
    tickets = Tickets()
    harness = tickets.harness

    def consent(person: UserId) -> None:
        tickets.connected.add(person)
        account_of(tickets, person)

    tickets.on_refusal = consent
    run_id = await tickets.run_of(ANN)
    assert (harness.run(run_id).status, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await harness.new_worker().execute(run_id)
    assert (harness.run(run_id).status, harness.results()) == (RunStatus.COMPLETED, ["3 tickets"])


async def test_an_account_that_its_server_refuses_is_tried_once_more_and_then_waited_for() -> None:
    tickets = Tickets()
    tickets.on_refusal = lambda person: account_of(tickets, person)
    run_id = await tickets.run_of(ANN)
    assert tickets.harness.run(run_id).status is RunStatus.QUEUED
    await tickets.harness.worker.execute(run_id)
    assert tickets.harness.run(run_id).status is RunStatus.REQUIRES_ACTION


async def test_an_account_from_before_the_run_does_not_continue_it() -> None:
    tickets = Tickets()
    account_of(tickets, ANN)
    tickets.harness.clock.advance(1)
    run_id = await tickets.run_of(ANN)
    assert tickets.harness.run(run_id).status is RunStatus.REQUIRES_ACTION


async def test_a_run_waits_though_its_account_cannot_be_read(mocker: MockerFixture) -> None:
    tickets = Tickets()
    read = mocker.patch.object(tickets.harness.accounts.authorizer, "account", side_effect=RuntimeError("a defect"))
    run_id = await tickets.run_of(ANN)
    read.assert_awaited_once()
    assert tickets.harness.run(run_id).status is RunStatus.REQUIRES_ACTION


async def test_a_run_that_ended_meanwhile_stays_ended() -> None:
    tickets = Tickets()
    run_id = await tickets.run_of(ANN)
    await tickets.harness.cancel(run_id)
    await tickets.connect(ANN)
    assert tickets.harness.run(run_id).status is RunStatus.CANCELLED
    assert all(entry.state is not ToolCallState.AWAITING_INPUT for entry in tickets.harness.ledger(run_id))
