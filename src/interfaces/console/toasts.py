"""What the frame of the console says once something was changed: a sentence by route, in a header
of the answer."""

from collections.abc import Mapping

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.plugins.htmx import HTMXHeaders
from litestar.status_codes import HTTP_200_OK
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from interfaces.console.inbox_answers import SETTLED
from interfaces.console_paths import PATH, SIGN_IN_PATH

HEADER = "Toast"

ON_THE_PAGE = frozenset(
    {
        "/agents/{agent_id}/cancel-runs",
        "/approvals/{approval_id}",
        "/audit/verify",
        "/chat",
        "/first-agent",
        "/first-agent/hello",
        "/gateway",
        "/inbox/approvals/{approval_id}",
        "/inbox/bulk",
        "/keys",
        "/model-providers/{name}/test",
        "/people/{user_id}/impersonation",
        "/queue/cancel",
        "/queue/requeue",
        "/runs/bulk",
        "/runs/stop",
        "/servers-import",
        "/servers-import/preview",
        "/servers-new/test",
        "/servers/{slug}/authorize",
        "/servers/{slug}/edit/test",
        "/servers/{slug}/prompts/get",
        "/servers/{slug}/refresh",
        "/servers/{slug}/resources/read",
        "/servers/{slug}/test",
        "/servers/{slug}/try",
        "/settings/identity-providers/{provider}/scim-token",
        "/settings/identity-providers/{provider}/test",
        "/settings/organizations",
        "/settings/organizations/{organization_id}/keys",
        "/settings/webhook-key",
        "/workflows/runs/{run_id}/answer",
    }
)
"""Actions whose outcome is shown where they were asked for."""
ELSEWHERE = frozenset(
    {
        "/accounts/{server}/connect",
        "/agents/explain",
        "/authorize",
        "/sign-in",
        "/sign-in/with/{provider_id}",
        "/sign-in/{code}",
        "/sign-out",
        "/workflows/check",
    }
)
"""Those that change nothing here, or lead out of the console's pages."""
SENTENCES: Mapping[str, str] = {
    "/accounts/{server}/disconnect": "Your account is disconnected.",
    "/accounts/{server}/secrets": "Your secrets are stored.",
    "/agents": "The agent is created.",
    "/agents/{agent_id}": "The agent is saved.",
    "/agents/{agent_id}/delete": "The agent is deleted.",
    "/agents/{agent_id}/enabled": "The agent is changed.",
    "/deliveries/{delivery_id}/retry": "The webhook is sent again.",
    "/gateway/{session_id}/revoke": "The session is revoked.",
    "/impersonation/end": "The impersonation is ended.",
    "/keys/{key_id}/revoke": "The key is revoked.",
    "/model-providers": "The model provider is added.",
    "/model-providers/{name}/delete": "The model provider is deleted.",
    "/people/groups": "The group is created.",
    "/people/groups/{group}": "The group is saved.",
    "/people/groups/{group}/delete": "The group is deleted.",
    "/people/roles": "The role is created.",
    "/people/roles/{role}": "The role is saved.",
    "/people/roles/{role}/delete": "The role is deleted.",
    "/people/{user_id}": "The user is changed.",
    "/people/{user_id}/limits": "The limits are saved.",
    "/playground": "The run is started.",
    "/runs/{run_id}/answer": "The question is answered.",
    "/runs/{run_id}/cancel": "The run is cancelled.",
    "/runs/{run_id}/retry": "The run is started again.",
    "/runs/{run_id}/settle": "The call is settled.",
    "/schedules": "The schedule is created.",
    "/schedules/{schedule_id}": "The schedule is saved.",
    "/schedules/{schedule_id}/delete": "The schedule is deleted.",
    "/schedules/{schedule_id}/enabled": "The schedule is changed.",
    "/secrets": "The secret is stored.",
    "/secrets/{name}/delete": "The secret is deleted.",
    "/servers-new": "The server is added.",
    "/servers-registries/{registry}/{namespace}/{name}": "The server is added.",
    "/servers/{slug}/approve": "The tool is approved.",
    "/servers/{slug}/reject": "The tool is rejected.",
    "/servers/{slug}/delete": "The server is deleted.",
    "/servers/{slug}/disconnect": "The server is disconnected. The next call connects it.",
    "/servers/{slug}/edit": "The server is saved.",
    "/servers/{slug}/install": "The installation has begun.",
    "/servers/{slug}/reinstall": "The installation has begun.",
    "/servers/{slug}/switch": "The server is changed.",
    "/servers/{slug}/uninstall": "The installation is removed.",
    "/sessions/end": "The sessions are ended.",
    "/sessions/{session_id}/end": "The session is ended.",
    "/settings": "The settings are saved.",
    "/settings/identity-providers-new": "The identity provider is added.",
    "/settings/identity-providers/{provider}": "The identity provider is saved.",
    "/settings/identity-providers/{provider}/delete": "The identity provider is deleted.",
    "/settings/identity-providers/{provider}/scim-token/revoke": "The token is revoked.",
    "/settings/model-providers/{name}": "The model provider is saved.",
    "/settings/organizations/{organization_id}": "The organization is saved.",
    "/threads/{thread_id}/delete": "The thread is deleted.",
    "/threads/{thread_id}/release": "The thread is released.",
    "/threads/{thread_id}/sources": "The file is added.",
    "/threads/{thread_id}/sources/{source_id}/delete": "The file is deleted.",
    "/workflows/new": "The workflow is created.",
    "/workflows/runs/{run_id}/cancel": "The workflow run is cancelled.",
    "/workflows/runs/{run_id}/replay": "The workflow run is started.",
    "/workflows/{workflow}/delete": "The workflow is deleted.",
    "/workflows/{workflow}/edit": "The workflow is saved.",
    "/workflows/{workflow}/restore": "The version is restored as the newest.",
    "/workflows/{workflow}/runs": "The workflow run is started.",
}


def toast(sentence: str) -> dict[str, str]:
    """The header of an answer that says something else than its route's sentence."""
    return {HEADER: sentence} if sentence else {}


def saying(app: ASGIApp) -> ASGIApp:
    """Middleware that adds the sentence of the route to answers that say nothing themselves.
    Failures have none, nor has what is shown in another place than the form asked for, nor who has
    to sign in first."""

    async def said(scope: Scope, receive: Receive, send: Send) -> None:
        sentence = SENTENCES.get(scope.get("path_template", "").removeprefix(PATH))
        if scope["type"] != ScopeType.HTTP or scope["method"] != "POST" or sentence is None:
            await app(scope, receive, send)
            return

        async def with_sentence(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == HTTP_200_OK:
                headers = MutableScopeHeaders.from_message(message)
                shown = headers.get(HTMXHeaders.TRIGGER_EVENT.value) == SETTLED
                leaves = headers.get(HTMXHeaders.REDIRECT.value, "").startswith(SIGN_IN_PATH)
                is_elsewhere = HTMXHeaders.RE_TARGET.value in headers
                if not shown and not leaves and not is_elsewhere:
                    headers.setdefault(HEADER, sentence)
            await send(message)

        await app(scope, receive, with_sentence)

    return said
