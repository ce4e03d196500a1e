"""NotifyOfApproval: tells the person at a client, while its call waits, that the call requires
approval."""

import asyncio

from application.approvals.ports import ApprovalStore, session_approvals_topic
from application.gateway.calls.ask_client import AskableClient, AskClient, Conversation
from application.gateway.ports import AskedCall
from application.policy.canary_guard import CanaryGuard
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalState
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientRequest, ClientRequestKind

_REREAD_S = 5.0
_KIND = ClientRequestKind.ELICITATION
_NOTHING_TO_FILL_IN: JsonObject = {"type": "object", "properties": {}}


class NotifyOfApproval:
    """Rules:
    - The form names the approval and decides nothing: the holder of a session token, perhaps a
      program, has no right to approve by it.
    - A client that agrees waits for the decision. One that refuses, leaves or does not answer
      gets the approval's id and may repeat the call later.
    - A decision while the form is open withdraws the form, and the call continues.
    """

    def __init__(self, *, asking: AskClient, approvals: ApprovalStore, wakeups: Wakeups) -> None:
        self._asking = asking
        self._approvals = approvals
        self._wakeups = wakeups

    def can_notify(self, client: AskableClient | None) -> bool:
        """Whether the client supports forms and can be asked while its call waits."""
        able = None if client is None or client.ask is None else client.capabilities.get(_KIND.capability)
        return isinstance(able, dict) and ("form" in able or "url" not in able)

    async def execute(
        self, session: GatewaySession, waiting: AskedCall, client: AskableClient, *, guard: CanaryGuard
    ) -> bool:
        """Whether the approval ended while the client waited."""
        approval = waiting.approval
        told = ClientRequest(
            key="approval",
            kind=_KIND,
            params={
                "message": f"The call of {approval.tool} needs an approval: {approval.id}, until"
                f" {approval.expires_at:%Y-%m-%d %H:%M} UTC. An approver decides in Dragoman. Wait for the decision?",
                "requestedSchema": _NOTHING_TO_FILL_IN,
            },
        )
        allowed = frozenset({_KIND})
        conversation = Conversation(self._asking, session, waiting.call, allowed, client, guard=guard, call_s=0.0)
        asking = asyncio.create_task(_waits(conversation, told), name="gateway-approval-form")
        ending = asyncio.create_task(self._ended(session, approval.id), name="gateway-approval-end")
        leaving = asyncio.create_task(client.left.wait())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and asking.result():
                answer_s = self._asking.limits.answer_s
                await asyncio.wait({ending, leaving}, timeout=answer_s, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await ending  # raises if reading failed
            return ending.done()
        finally:
            for task in (asking, ending, leaving):
                task.cancel()
            await asyncio.wait({asking, ending, leaving})

    async def _ended(self, session: GatewaySession, approval_id: ApprovalId) -> None:
        async with self._wakeups.subscribe(session_approvals_topic(session.id)) as woken:
            while True:
                stored = await self._approvals.get(session.organization_id, approval_id)
                if stored is None or stored.state is not ApprovalState.PENDING:
                    return
                await woken.wait(_REREAD_S)


async def _waits(conversation: Conversation, told: ClientRequest) -> bool:
    answer = (await conversation.ask((told,)))[told.key]
    return answer.word == "accept"
