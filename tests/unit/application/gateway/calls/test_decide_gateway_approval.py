"""DecideGatewayApproval: who may decide about a call of a session, how, and until when."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.consents import Consents
from application.approvals.ports import session_approvals_topic
from application.gateway.calls.decide_gateway_approval import DecideGatewayApproval
from application.gateway.ports import GatewayApprovals
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.policy.canary_guard import CanaryGuard
from application.system.wakeups import Wakeups
from application.tools.check_tool_call import CheckToolCall
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewayCallState
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonObject
from domain.policy.rules import ToolRule, Verdict
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.approval_builders import deciders
from tests.builders import KEY, START, an_agent
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.doubles.gateway_approvals import InMemoryGatewayApprovals
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import (
    ASKS,
    CANARY,
    ECHO,
    a_gateway_approval,
    a_gateway_session,
    a_gateway_toolset,
    a_state_with,
    a_waiting_call,
)
from tests.mcp_builders import a_person_tool
from tests.people_builders import a_person
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

SESSION, APPROVAL = a_gateway_session(), a_gateway_approval()
CALL = a_waiting_call(APPROVAL)
OPENER = replace(a_principal(), key_id=KEY)
ASKS_OTHERS = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("loud",))}


class Ports:
    """A session one of whose calls waits for an approval, in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION, CALL)
        self.state.approvals[APPROVAL.id] = APPROVAL
        self.asking: GatewayApprovals = InMemoryGatewayApprovals(self.state)
        self.toolsets: MockType = mocker.create_autospec(GatewayToolsets, instance=True)
        self.toolsets.of.return_value = a_gateway_toolset(rules=ASKS, canary=True)
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.clock = FixedClock()

    @property
    def deciding(self) -> DecideGatewayApproval:
        return DecideGatewayApproval(
            asking=self.asking,
            sessions=InMemoryGatewaySessionStore(self.state),
            toolsets=self.toolsets,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            deciders=deciders(self.state),
            consents=Consents(approvals=InMemoryApprovalStore(self.state)),
            wakeups=self.wakeups,
            clock=self.clock,
        )

    async def decide(
        self,
        approval: Approval = APPROVAL,
        *,
        by: Principal | None = None,
        approve: bool = True,
        arguments: JsonObject | None = None,
        reason: str | None = None,
    ) -> None:
        decision = CallDecision(tool_call_id=approval.tool_call_id, approve=approve, arguments=arguments, reason=reason)
        await self.deciding.execute(by or a_principal(), approval, decision)

    @property
    def stored(self) -> Approval:
        return self.state.approvals[APPROVAL.id]

    def assert_nothing_is_decided(self) -> None:
        assert self.stored == APPROVAL
        assert self.state.audit == {}


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C3", "C5")
@pytest.mark.parametrize(
    ("approve", "state", "action"),
    [
        (True, ApprovalState.APPROVED, AuditAction.TOOL_APPROVED),
        (False, ApprovalState.DENIED, AuditAction.TOOL_DENIED),
    ],
)
async def test_a_decision_is_stored_with_its_audit_entry_and_whoever_waits_is_woken(
    ports: Ports, approve: bool, state: ApprovalState, action: AuditAction
) -> None:
    await ports.decide(approve=approve, reason="because")

    assert (ports.stored.state, ports.stored.decided_by, ports.stored.reason) == (state, "key_admin", "because")
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.details["reason"]) == (action, "key_admin", "because")
    ports.wakeups.wake.assert_called_once_with(session_approvals_topic(SESSION.id))


@pytest.mark.requirement("C3", "F5")
async def test_deciding_sends_nothing(ports: Ports) -> None:
    await ports.decide()

    call, settlement = ports.state.gateway_sessions[SESSION.id].calls[CALL.id]
    assert (call.state, settlement) == (GatewayCallState.AWAITING_APPROVAL, None)


@pytest.mark.requirement("C3")
async def test_an_approval_is_decided_once(ports: Ports) -> None:
    await ports.decide(approve=False)

    with refused("approval_decided"):
        await ports.decide()

    assert ports.stored.state is ApprovalState.DENIED
    assert len(ports.state.audit) == 1


@pytest.mark.requirement("C3")
async def test_an_approval_whose_time_is_up_is_not_given(ports: Ports) -> None:
    ports.clock.advance(1800)

    with refused("approval_expired"):
        await ports.decide()

    ports.assert_nothing_is_decided()


@pytest.mark.requirement("C3")
async def test_whoever_opened_the_session_does_not_approve_where_policy_wants_somebody_else(ports: Ports) -> None:
    guarded = replace(APPROVAL, allow_self_approval=False)

    with refused("self_approval_forbidden"):
        await ports.decide(guarded, by=OPENER)
    ports.assert_nothing_is_decided()

    await ports.decide(guarded, by=OPENER, approve=False)
    assert ports.stored.state is ApprovalState.DENIED


@pytest.mark.requirement("C3")
async def test_edited_arguments_are_stored_as_they_would_be_sent(ports: Ports) -> None:
    await ports.decide(arguments={"text": "edited"})

    assert ports.stored.edited_arguments == {"text": "edited"}
    [entry] = ports.state.audit.values()
    assert entry.details["edited"] is True


@pytest.mark.requirement("C2", "C3", "C4")
@pytest.mark.parametrize(
    ("arguments", "approve", "code"),
    [
        ({"text": 7}, True, "arguments_invalid"),
        ({"text": "a", "loud": True}, True, "arguments_denied"),
        ({"text": CANARY}, True, "arguments_denied"),
        ({"text": "edited"}, False, "arguments_invalid"),
    ],
    ids=["schema", "policy", "canary token", "denial"],
)
async def test_arguments_that_may_not_be_sent_decide_nothing(
    ports: Ports, arguments: JsonObject, approve: bool, code: str
) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(rules=ASKS_OTHERS, canary=True)

    with refused(code):
        await ports.decide(arguments=arguments, approve=approve)

    ports.assert_nothing_is_decided()


@pytest.mark.requirement("C3", "P3")
async def test_arguments_of_a_call_with_the_openers_account_are_edited_by_the_opener_only(ports: Ports) -> None:
    opener = a_person(Role.OPERATOR)
    ports.state.gateway_sessions[SESSION.id].session = replace(SESSION, created_by=opener.key_id)
    ports.toolsets.of.return_value = a_gateway_toolset(a_person_tool(), rules=ASKS)

    with refused("account_not_yours"):
        await ports.decide(arguments={"text": "edited"})
    ports.assert_nothing_is_decided()

    await ports.decide(by=opener, arguments={"text": "mine"})
    assert ports.stored.edited_arguments == {"text": "mine"}


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("approve", [True, False])
async def test_an_approval_for_another_version_of_the_agent_is_stale(ports: Ports, approve: bool) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(rules=ASKS, agent=an_agent(version=2))

    with refused("approval_stale"):
        await ports.decide(approve=approve)

    assert (ports.stored.state, ports.state.audit) == (ApprovalState.STALE, {})


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("changed", [{"revoked_at": START}, {"expires_at": START}], ids=["revoked", "expired"])
async def test_an_approval_of_a_session_that_has_ended_is_cancelled(
    ports: Ports, changed: Mapping[str, object]
) -> None:
    stored = ports.state.gateway_sessions[SESSION.id]
    stored.session = replace(SESSION, **changed)  # type: ignore[arg-type]

    with refused("approval_cancelled"):
        await ports.decide()

    assert (ports.stored.state, ports.state.audit) == (ApprovalState.CANCELLED, {})


@pytest.mark.requirement("C1", "C3")
async def test_calls_of_a_disabled_agent_are_denied_but_not_approved(ports: Ports) -> None:
    ports.toolsets.of.side_effect = ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled.")

    with refused("agent_disabled"):
        await ports.decide()
    ports.assert_nothing_is_decided()

    ports.toolsets.guard_of.return_value = CanaryGuard({})
    await ports.decide(approve=False)
    assert ports.stored.state is ApprovalState.DENIED


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_reason_is_not_stored(ports: Ports) -> None:
    await ports.decide(approve=False, reason=f"It said {CANARY}.")

    assert ports.stored.reason == "It said [canary:vault]."


@pytest.mark.requirement("C1", "C4")
async def test_a_canary_token_in_the_reason_is_not_stored_while_the_agent_is_disabled(ports: Ports) -> None:
    ports.toolsets.of.side_effect = ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled.")
    ports.toolsets.guard_of.return_value = a_gateway_toolset(canary=True).guard

    await ports.decide(approve=False, reason=f"It said {CANARY}.")

    ports.toolsets.guard_of.assert_awaited_once_with(SESSION)
    assert ports.stored.reason == "It said [canary:vault]."
    [entry] = ports.state.audit.values()
    assert entry.details["reason"] == "It said [canary:vault]."


@pytest.mark.requirement("C3", "C5")
async def test_an_approval_whose_time_is_up_is_denied_once(ports: Ports) -> None:
    await ports.deciding.expire(APPROVAL)
    await ports.deciding.expire(APPROVAL)

    assert ports.stored.state is ApprovalState.EXPIRED
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.details["expired"]) == (AuditAction.TOOL_DENIED, True)


@pytest.mark.parametrize("expires", [True, False])
async def test_a_decision_that_cannot_be_stored_wakes_nobody(
    ports: Ports, mocker: MockerFixture, expires: bool
) -> None:
    ports.asking = mocker.create_autospec(GatewayApprovals, instance=True)
    ports.asking.end.side_effect = storage_away()

    with refused("storage_unavailable"):
        await (ports.deciding.expire(APPROVAL) if expires else ports.decide())

    ports.wakeups.wake.assert_not_called()
