"""Gateway sessions as JSON. Only the response to the creation contains the token."""

from typing import Annotated, TypedDict

from domain.gateway.session import GatewaySession, ToolNames
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, ExpiresAt, Items, NextCursor, Timestamp


class GatewaySessionView(TypedDict):
    """A session without its token. `revoked_at` is also set when its run or workflow run has
    ended."""

    id: Annotated[str, "Id of the session."]
    agent_id: Annotated[str, "Id of the agent whose tools it has."]
    run_id: Annotated[str | None, "The run whose tools it has; null if it has another origin."]
    workflow_run_id: Annotated[str | None, "The workflow run whose tools it has; null if it has another origin."]
    node_ids: Annotated[list[str] | None, "Tool nodes of the workflow run; null if it has another origin."]
    thread_id: Annotated[str, "Id of the thread that holds the files of its calls."]
    names: Annotated[ToolNames, "Names of its tools."]
    created_by: Annotated[str, "The API key or user that opened it."]
    client_id: Annotated[str | None, "The OAuth client to which the user granted it; null if it has another origin."]
    client_name: Annotated[str | None, "What that client calls itself."]
    created_at: CreatedAt
    expires_at: ExpiresAt
    revoked_at: Annotated[Timestamp | None, "Time of its revocation, or of the end of its run; null while it is open."]


class OpenedGatewaySessionView(GatewaySessionView):
    """A new session; `token` is shown only once. `url` is where clients connect, null if the
    service listens on no port."""

    token: Annotated[str, "Bearer token of the session: `dgs_…`. It is shown only once."]
    url: Annotated[str | None, "Where clients connect; null if the service listens on no port."]


class GatewaySessionPage(TypedDict):
    """A page of sessions; `next_cursor` is null on the last one."""

    data: Items[GatewaySessionView]
    next_cursor: NextCursor


def gateway_session_view(session: GatewaySession) -> GatewaySessionView:
    return {
        "id": session.id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
        "workflow_run_id": None if session.wired is None else session.wired.workflow_run_id,
        "node_ids": None if session.wired is None else [*session.wired.node_ids],
        "thread_id": session.thread_id,
        "names": session.names,
        "created_by": session.created_by,
        "client_id": session.client_id,
        "client_name": session.client_name,
        "created_at": timestamp(session.created_at),
        "expires_at": timestamp(session.expires_at),
        "revoked_at": None if session.revoked_at is None else timestamp(session.revoked_at),
    }


def opened_gateway_session_view(session: GatewaySession, *, token: str, url: str | None) -> OpenedGatewaySessionView:
    return {**gateway_session_view(session), "token": token, "url": url}
