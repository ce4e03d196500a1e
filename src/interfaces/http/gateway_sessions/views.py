"""Gateway sessions as JSON. Only the response to the creation contains the token."""

from typing import TypedDict

from domain.gateway.session import GatewaySession
from domain.threads.message_json import timestamp


class GatewaySessionView(TypedDict):
    """A session without its token. `revoked_at` is also set when its run or workflow run has
    ended."""

    id: str
    agent_id: str
    run_id: str | None
    workflow_run_id: str | None
    node_ids: list[str] | None
    thread_id: str
    names: str
    created_by: str
    created_at: str
    expires_at: str
    revoked_at: str | None


class OpenedGatewaySessionView(GatewaySessionView):
    """A new session; `token` is shown only once. `url` is where clients connect, null if the
    service listens on no port."""

    token: str
    url: str | None


class GatewaySessionPage(TypedDict):
    """A page of sessions; `next_cursor` is null on the last one."""

    data: list[GatewaySessionView]
    next_cursor: str | None


def gateway_session_view(session: GatewaySession) -> GatewaySessionView:
    return {
        "id": session.id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
        "workflow_run_id": None if session.wired is None else session.wired.workflow_run_id,
        "node_ids": None if session.wired is None else [*session.wired.node_ids],
        "thread_id": session.thread_id,
        "names": session.names.value,
        "created_by": session.created_by,
        "created_at": timestamp(session.created_at),
        "expires_at": timestamp(session.expires_at),
        "revoked_at": None if session.revoked_at is None else timestamp(session.revoked_at),
    }


def opened_gateway_session_view(session: GatewaySession, *, token: str, url: str | None) -> OpenedGatewaySessionView:
    return {**gateway_session_view(session), "token": token, "url": url}
