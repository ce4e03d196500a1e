"""CheckDecisions: which decisions about the calls of a waiting run are taken, and what they
store."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.agents.ports import AgentStore
from application.approvals.check_decisions import CheckDecisions, CheckedDecisions
from application.approvals.consents import Consents
from application.approvals.ports import ApprovalStore
from application.mcp.ports import McpServerStore
from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset_builder import ToolsetBuilder
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.organization_group import OrganizationGroup
from domain.identity.role import Role
from domain.ids import ApiKeyId, GroupId, UserId
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from domain.policy.approvers import Approvers
from domain.policy.rules import ToolRule, Verdict
from domain.runs.run import Run
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.approval_builders import deciders
from tests.builders import KEY, ORG, START, a_key, a_run, a_server, a_tool_call, after, an_agent
from tests.doubles.state import InMemoryState
from tests.mcp_builders import a_person_tool
from tests.people_builders import USER, a_person
from tests.refusals import refused, storage_away
from tests.run_builders import (
    ASKS,
    CANARY,
    DENIES,
    ECHO,
    a_guarded_agent,
    a_pinned_approval,
    a_run_approval,
    a_toolset,
    a_use_awaiting,
    a_waiting_run,
)
from tests.unit.application.actors import a_principal

APPROVAL = a_run_approval()
OTHER = a_run_approval(a_tool_call(1))
RUN = a_waiting_run(a_use_awaiting(APPROVAL), a_use_awaiting(OTHER))
REQUESTER = replace(a_principal(Role.OPERATOR), key_id=KEY)


class Ports:
    """A run with two calls that wait for approvals, and mocks of what `CheckDecisions` calls."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.approvals: MockType = mocker.create_autospec(ApprovalStore, instance=True)
        self.approvals.of_run.return_value = (APPROVAL, OTHER)
        self.agents: MockType = mocker.create_autospec(AgentStore, instance=True)
        self.agents.get.return_value = a_guarded_agent()
        self.servers: MockType = mocker.create_autospec(McpServerStore, instance=True)
        self.servers.get.return_value = a_server(version=3)
        self.catalog: MockType = mocker.create_autospec(ToolsetBuilder, instance=True)
        self.catalog.toolset.return_value = a_toolset(rules=ASKS)
        self.run: Run = RUN
        self.state = InMemoryState()

    async def check(
        self, *decisions: CallDecision, by: Principal | None = None, at_s: float = 60.0
    ) -> CheckedDecisions:
        checking = CheckDecisions(
            approvals=self.approvals,
            agents=self.agents,
            servers=self.servers,
            catalog=self.catalog,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            deciders=deciders(self.state),
            consents=Consents(approvals=self.approvals),
        )
        return await checking.execute(by or a_principal(Role.OPERATOR), self.run, decisions, at=after(at_s))


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def approve(approval: Approval = APPROVAL, arguments: JsonObject | None = None) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=True, arguments=arguments)


def deny(approval: Approval = APPROVAL, reason: str | None = None) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=False, reason=reason)


@pytest.mark.requirement("C3")
async def test_decisions_become_outcomes_with_the_key_that_decided(ports: Ports) -> None:
    checked = await ports.check(approve(), deny(OTHER, reason="Too loud."))

    approved, denied = checked.outcomes
    assert (approved.approval_id, approved.state, approved.by) == (APPROVAL.id, ApprovalState.APPROVED, "key_operator")
    assert (denied.approval_id, denied.state, denied.reason) == (OTHER.id, ApprovalState.DENIED, "Too loud.")
    assert (approved.at, approved.edited_arguments, checked.stale) == (after(60), None, None)


async def test_no_decisions_read_nothing(ports: Ports) -> None:
    assert await ports.check() == CheckedDecisions()

    ports.approvals.of_run.assert_not_awaited()
    ports.agents.get.assert_not_awaited()


# --- a pending approval, in time, and once ---


@pytest.mark.requirement("C3")
async def test_a_call_that_waits_for_no_approval_is_refused_by_its_place(ports: Ports) -> None:
    with pytest.raises(ServiceError) as raised:
        await ports.check(approve(), approve(a_run_approval(a_tool_call(7))))

    assert (raised.value.code, raised.value.kind) == ("tool_call_not_pending", ErrorKind.INVALID)
    assert [violation.path for violation in raised.value.violations] == ["approvals.1.tool_call_id"]


async def test_a_run_that_does_not_wait_is_a_conflict(ports: Ports) -> None:
    ports.run = a_run()
    ports.approvals.of_run.return_value = ()

    with refused("run_not_waiting"):
        await ports.check(approve())


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ApprovalState.APPROVED, "approval_decided"),
        (ApprovalState.DENIED, "approval_decided"),
        (ApprovalState.EXPIRED, "approval_expired"),
        (ApprovalState.STALE, "approval_stale"),
        (ApprovalState.CANCELLED, "approval_cancelled"),
    ],
)
async def test_an_approval_that_has_ended_is_not_decided_again(ports: Ports, state: ApprovalState, code: str) -> None:
    ports.approvals.of_run.return_value = (replace(APPROVAL, state=state), OTHER)

    with refused(code):
        await ports.check(approve())


@pytest.mark.requirement("C3")
async def test_of_two_approvals_of_one_call_the_pending_one_is_decided(ports: Ports) -> None:
    earlier = replace(APPROVAL, id=OTHER.id, state=ApprovalState.STALE)
    ports.approvals.of_run.return_value = (APPROVAL, earlier)

    [outcome] = (await ports.check(approve())).outcomes

    assert outcome.approval_id == APPROVAL.id


@pytest.mark.requirement("C3")
async def test_a_decision_about_a_former_approval_of_the_call_is_refused(ports: Ports) -> None:
    with refused("approval_decided"):
        await ports.check(replace(approve(), approval_id=OTHER.id))


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("decision", [approve(), deny()], ids=["approve", "deny"])
async def test_an_expired_approval_is_not_decided(ports: Ports, decision: CallDecision) -> None:
    await ports.check(decision, at_s=1799)

    with refused("approval_expired"):
        await ports.check(decision, at_s=1800)


@pytest.mark.requirement("C3")
async def test_the_requester_of_the_run_does_not_approve_where_policy_requires_another_key(ports: Ports) -> None:
    ports.approvals.of_run.return_value = (a_run_approval(allow_self_approval=False),)

    with refused("self_approval_forbidden"):
        await ports.check(approve(), by=REQUESTER)

    [denied] = (await ports.check(deny(), by=REQUESTER)).outcomes
    [approved] = (await ports.check(approve())).outcomes
    assert (denied.state, approved.state) == (ApprovalState.DENIED, ApprovalState.APPROVED)


@pytest.mark.requirement("C3")
async def test_the_requester_approves_where_policy_does_not_require_another_key(ports: Ports) -> None:
    [outcome] = (await ports.check(approve(), by=REQUESTER)).outcomes

    assert outcome.by == KEY


# --- edited arguments ---


@pytest.mark.requirement("C2", "C3")
async def test_edited_arguments_are_stored_as_they_will_be_sent(ports: Ports) -> None:
    asked, other = (await ports.check(approve(arguments={"text": "edited"}), approve(OTHER))).outcomes

    assert (asked.edited_arguments, other.edited_arguments) == ({"text": "edited"}, None)


@pytest.mark.requirement("C2", "C3", "C4")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"text": 7}, "arguments_invalid"),
        ({"text": "a", "loud": True}, "arguments_denied"),
        ({"text": f"say {CANARY}"}, "arguments_denied"),
    ],
    ids=["schema", "policy", "canary token"],
)
async def test_arguments_that_may_not_be_sent_are_refused_by_their_place(
    ports: Ports, arguments: JsonObject, code: str
) -> None:
    rules = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("loud",))}
    ports.catalog.toolset.return_value = a_toolset(rules=rules)

    with pytest.raises(ServiceError) as raised:
        await ports.check(deny(OTHER), approve(arguments=arguments))

    assert (raised.value.code, [wrong.path for wrong in raised.value.violations]) == (code, ["approvals.1.arguments"])


@pytest.mark.requirement("C2", "C3")
async def test_arguments_for_a_tool_that_policy_denies_by_now_are_refused(ports: Ports) -> None:
    ports.catalog.toolset.return_value = a_toolset(rules=DENIES)

    with refused("arguments_denied"):
        await ports.check(approve(arguments={"text": "edited"}))


@pytest.mark.requirement("C3", "P3")
async def test_arguments_of_a_call_with_a_persons_account_are_edited_by_that_person_only(ports: Ports) -> None:
    ports.run = replace(RUN, requested_by=ApiKeyId(USER))
    ports.catalog.toolset.return_value = a_toolset(a_person_tool(), rules=ASKS)
    for other in (a_principal(), a_person(id=UserId(f"{USER}9")), replace(a_principal(), key_of=USER)):
        with refused("account_not_yours"):
            await ports.check(approve(arguments={"text": "edited"}), by=other)
    [unchanged] = (await ports.check(approve(), by=a_principal())).outcomes
    [edited] = (await ports.check(approve(arguments={"text": "mine"}), by=a_person(Role.OPERATOR))).outcomes
    assert (unchanged.state, edited.edited_arguments) == (ApprovalState.APPROVED, {"text": "mine"})


@pytest.mark.requirement("C3")
async def test_the_arguments_of_a_denied_call_are_not_edited(ports: Ports) -> None:
    with refused("arguments_invalid"):
        await ports.check(replace(deny(), arguments={"text": "edited"}))

    ports.catalog.toolset.assert_not_awaited()


@pytest.mark.requirement("C3", "E3")
async def test_a_call_that_may_have_been_sent_is_sent_again_as_it_was_or_not_at_all(ports: Ports) -> None:
    ports.run = a_waiting_run(a_use_awaiting(APPROVAL, outcome_unknown=True))

    with refused("arguments_invalid"):
        await ports.check(approve(arguments={"text": "edited"}))

    [approved] = (await ports.check(approve())).outcomes
    assert approved.edited_arguments is None


async def test_arguments_are_not_edited_after_the_agent_was_deleted(ports: Ports) -> None:
    ports.agents.get.return_value = None

    with refused("agent_deleted"):
        await ports.check(approve(arguments={"text": "edited"}))

    assert (await ports.check(approve())).outcomes[0].state is ApprovalState.APPROVED


async def test_without_edited_arguments_no_server_is_asked_for_its_tools(ports: Ports) -> None:
    await ports.check(approve())

    ports.catalog.toolset.assert_not_awaited()


# --- stale approvals ---


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("decision", [approve(), deny()], ids=["approve", "deny"])
async def test_an_approval_for_another_version_of_the_agent_is_stale_and_decides_nothing(
    ports: Ports, decision: CallDecision
) -> None:
    ports.agents.get.return_value = an_agent(version=2)

    checked = await ports.check(decision)

    assert checked.stale == APPROVAL.id
    assert [(end.approval_id, end.state, end.by) for end in checked.outcomes] == [
        (APPROVAL.id, ApprovalState.STALE, "system"),
        (OTHER.id, ApprovalState.STALE, "system"),
    ]


@pytest.mark.requirement("C3")
async def test_a_stale_approval_of_another_call_stops_no_decision(ports: Ports) -> None:
    fresh = a_run_approval(agent_version=2)
    ports.approvals.of_run.return_value = (fresh, OTHER)
    ports.agents.get.return_value = an_agent(version=2)

    checked = await ports.check(approve(fresh))

    assert checked.stale is None
    assert [(end.approval_id, end.state) for end in checked.outcomes] == [(fresh.id, ApprovalState.APPROVED)]


# --- reasons ---


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_a_reason_is_replaced_by_its_mark(ports: Ports) -> None:
    [outcome] = (await ports.check(deny(reason=f"It said {CANARY}."))).outcomes

    assert outcome.reason == "It said [canary:vault]."


async def test_a_blank_reason_is_none(ports: Ports) -> None:
    assert (await ports.check(deny(reason="  "))).outcomes[0].reason is None


# --- ports that fail ---


@pytest.mark.parametrize("failing", ["approvals.of_run", "agents.get", "catalog.toolset"])
async def test_a_failure_of_a_port_reaches_the_caller(ports: Ports, failing: str) -> None:
    port, method = failing.split(".")
    getattr(getattr(ports, port), method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.check(approve(arguments={"text": "edited"}))


async def test_approvals_are_read_for_the_organization_of_the_run(ports: Ports) -> None:
    await ports.check(approve())

    ports.approvals.of_run.assert_awaited_once_with(RUN.organization_id, RUN.id)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("server", [a_server(version=4), None], ids=["changed", "deleted"])
async def test_an_approval_for_another_version_of_the_server_is_stale(ports: Ports, server: McpServer | None) -> None:
    pinned = a_pinned_approval(APPROVAL)
    ports.approvals.of_run.return_value = (pinned, OTHER)
    assert (await ports.check(approve(pinned))).stale is None

    ports.servers.get.return_value = server
    checked = await ports.check(approve(pinned))
    assert checked.stale == pinned.id
    assert [(outcome.approval_id, outcome.state) for outcome in checked.outcomes] == [(pinned.id, ApprovalState.STALE)]
    assert (await ports.check(approve(OTHER))).stale is None  # of an earlier release, and bound to no server


# --- who decides ---


async def a_group(ports: Ports, *members: UserId) -> None:
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=members, created_at=START, changed_at=START
    )
    ports.state.organization_groups[group.id] = group


@pytest.mark.requirement("C3", "P2")
async def test_a_member_of_the_group_decides_until_they_are_removed_from_it(ports: Ports) -> None:
    ann = replace(a_principal(Role.OPERATOR), key_id=ApiKeyId(USER))
    approvers = (Approvers(groups=("Leads",)),)
    ports.approvals.of_run.return_value = (replace(APPROVAL, approvers=approvers), OTHER)
    await a_group(ports, USER)
    assert len((await ports.check(approve(), by=ann)).outcomes) == 1

    await a_group(ports)
    with refused("not_an_approver"):
        await ports.check(approve(), by=ann)
    with refused("not_an_approver"):
        await ports.check(approve(), by=a_principal(Role.ADMIN))


@pytest.mark.requirement("C3", "P2")
async def test_of_many_decisions_none_is_taken_if_the_caller_may_not_take_one(ports: Ports) -> None:
    ports.approvals.of_run.return_value = (APPROVAL, replace(OTHER, approvers=(Approvers(people=("usr_bob",)),)))
    with refused("not_an_approver"):
        await ports.check(approve(), deny(OTHER))


@pytest.mark.requirement("C3", "P2")
async def test_the_creator_of_the_key_that_started_the_run_does_not_approve_with_four_eyes(ports: Ports) -> None:
    ann = replace(a_principal(Role.OPERATOR), key_id=ApiKeyId(USER))
    ports.state.keys[KEY] = replace(a_key(KEY), person_id=USER)
    ports.approvals.of_run.return_value = (replace(APPROVAL, requested_by=KEY, allow_self_approval=False), OTHER)
    with refused("self_approval_forbidden"):
        await ports.check(approve(), by=ann)
    assert len((await ports.check(deny(), by=ann)).outcomes) == 1
    assert len((await ports.check(approve())).outcomes) == 1
