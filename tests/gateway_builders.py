"""Builders of gateway sessions, their calls, approvals and tools: name what the test is about,
leave the rest."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime

from application.gateway.tools.gateway_toolset import GatewayToolset
from application.policy.canary_guard import CanaryGuard
from application.tools.toolset import Toolset
from domain.agents.agent import Agent
from domain.approvals.approval import Approval, ApprovalState, approval_digest
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.gateway.client_grant import ClientGrant
from domain.gateway.session import GatewaySession, ToolNames
from domain.identity.api_key import hash_token
from domain.ids import (
    ApiKeyId,
    ApprovalId,
    GatewaySessionId,
    OrganizationId,
    RunId,
    ThreadId,
    ToolCallId,
    WorkflowRunId,
)
from domain.json_value import JsonObject
from domain.policy.layers import PolicyLayers
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from domain.tools.wired import WiredNodes
from tests.builders import AGENT, KEY, ORG, SERVER, START, THREAD, a_thread, a_tool, after, an_agent, numbered
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.stored_gateway_session import StoredGatewaySession

ECHO = "mcp__files__echo"
CANARY = "canary-of-the-tests"
"""The text of the canary token `vault` of `a_gateway_toolset(canary=True)`."""

ASKS = {ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL)}
DENIES = {ECHO: ToolRule(decision=Verdict.DENY)}


def a_gateway_session(
    number: int = 1,
    *,
    organization_id: OrganizationId = ORG,
    thread_id: ThreadId = THREAD,
    run_id: RunId | None = None,
    wired: WiredNodes | None = None,
    names: ToolNames = ToolNames.NAMESPACED,
    token_hash: str | None = "hash",
    expires_at: datetime | None = None,
    revoked_at: datetime | None = None,
    created_by: ApiKeyId = KEY,
    client_id: str | None = None,
    token_expires_at: datetime | None = None,
) -> GatewaySession:
    """A session of an agent for an hour; of a run when it has a `run_id`."""
    return GatewaySession(
        id=GatewaySessionId(numbered("gws", number)),
        organization_id=organization_id,
        agent_id=AGENT,
        thread_id=thread_id,
        run_id=run_id,
        wired=wired,
        names=names,
        token_hash=token_hash,
        created_by=created_by,
        created_at=START,
        expires_at=after(3600) if expires_at is None else expires_at,
        revoked_at=revoked_at,
        client_id=client_id,
        client_name=None if client_id is None else "A client",
        token_expires_at=token_expires_at,
    )


VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
RESOURCE = "https://dragoman.example/mcp?agent=researcher"
CALLBACK = "http://127.0.0.1:33418/callback"
CLIENT = "https://client.example/oauth/client.json"
CODE = "dgk_code"


def a_client_grant(
    session_id: GatewaySessionId,
    *,
    client_id: str = CLIENT,
    resource: str = RESOURCE,
    code: str = CODE,
    redeemed_at: datetime | None = None,
    family: str | None = None,
    rest: str | None = None,
) -> ClientGrant:
    """A consent of a minute; redeemed with a `family` of refresh tokens."""
    return ClientGrant(
        session_id=session_id,
        organization_id=ORG,
        client_hash=hash_token(client_id),
        redirect_uri=CALLBACK,
        resource=resource,
        challenge=CHALLENGE,
        code_hash=hash_token(code),
        code_expires_at=after(60),
        redeemed_at=redeemed_at,
        family_hash=None if family is None else hash_token(family),
        refresh_hash=None if rest is None else hash_token(rest),
    )


def some_nodes(*node_ids: str) -> WiredNodes:
    """Tool nodes of a workflow run."""
    return WiredNodes(workflow_run_id=WorkflowRunId(numbered("wfr", 1)), node_ids=node_ids)


def a_state_with(session: GatewaySession, *calls: GatewayCall) -> InMemoryState:
    """In-memory tables that hold the session, its thread and its open calls."""
    state = InMemoryState()
    state.gateway_sessions[session.id] = StoredGatewaySession(
        session=session, calls={call.id: (call, None) for call in calls}
    )
    state.threads[session.thread_id] = StoredThread(thread=a_thread(session.thread_id))
    return state


def a_gateway_call(
    number: int = 1,
    *,
    name: str = ECHO,
    type: ToolType = ToolType.MCP_TOOL,
    params: JsonObject | None = None,
    due_at: datetime | None = None,
) -> GatewayCall:
    """A recorded call of `a_gateway_session()`."""
    return GatewayCall(
        id=ToolCallId(numbered("call", number)),
        session_id=a_gateway_session().id,
        organization_id=ORG,
        name=name,
        type=type,
        server_id=SERVER if type is ToolType.MCP_TOOL else None,
        params={"text": "hi"} if params is None else params,
        recorded_at=START,
        due_at=due_at,
    )


def a_gateway_approval(
    number: int = 1,
    *,
    of: GatewayCall | None = None,
    state: ApprovalState = ApprovalState.PENDING,
    agent_version: int = 1,
    allow_self_approval: bool = True,
    reason: str | None = None,
    edited_arguments: JsonObject | None = None,
) -> Approval:
    """The approval that the call needs, for half an hour."""
    call = of or a_gateway_call()
    is_decided = state is not ApprovalState.PENDING
    return Approval(
        id=ApprovalId(numbered("apr", number)),
        organization_id=ORG,
        tool_call_id=call.id,
        tool=call.name,
        arguments=call.params,
        digest=approval_digest(call.name, call.params, agent_version),
        agent_id=AGENT,
        agent_version=agent_version,
        requested_by=KEY,
        allow_self_approval=allow_self_approval,
        cause="The policy of the agent requires an approval.",
        created_at=START,
        expires_at=after(1800),
        gateway_session_id=call.session_id,
        server_id=call.server_id,
        state=state,
        decided_at=START if is_decided else None,
        decided_by="system" if is_decided else None,
        reason=reason,
        edited_arguments=edited_arguments,
    )


def a_waiting_call(approval: Approval, call: GatewayCall | None = None) -> GatewayCall:
    """The call as the ledger has it while it needs the approval."""
    call = call or a_gateway_call()
    return GatewayCall(
        id=call.id,
        session_id=call.session_id,
        organization_id=call.organization_id,
        name=call.name,
        type=call.type,
        server_id=call.server_id,
        params=call.params,
        recorded_at=call.recorded_at,
        state=GatewayCallState.AWAITING_APPROVAL,
        approval_id=approval.id,
    )


def a_gateway_toolset(
    *tools: Tool,
    rules: Mapping[str, ToolRule] | None = None,
    denied: tuple[Tool, ...] = (),
    allowlist: tuple[str, ...] | None = None,
    names: ToolNames = ToolNames.NAMESPACED,
    canary: bool = False,
    agent: Agent | None = None,
) -> GatewayToolset:
    """The tools of a session, `mcp__files__echo` unless others are given, under the rules of its
    agent."""
    layers = PolicyLayers(agent=ToolPolicies(rules=tuple((rules or {}).items())), agent_allowlist=allowlist)
    return GatewayToolset(
        agent=agent or an_agent(),
        organization=None,
        toolset=Toolset(tools=tools if tools or denied else (a_tool(),), denied=denied, policies=layers),
        names=names,
        guard=CanaryGuard({"vault": CANARY} if canary else {}),
    )
