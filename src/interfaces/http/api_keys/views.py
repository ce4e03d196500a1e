"""API keys as JSON. Only the response to the creation contains the token."""

from datetime import datetime
from typing import Annotated, TypedDict

from application.identity.create_api_key import CreatedApiKey
from application.revocation.stopped_work import StoppedWork
from domain.identity.api_key import ApiKey
from domain.identity.role import Role
from domain.threads.message_json import timestamp
from interfaces.http.rate_views import RateLimitView, rate_limit_view
from interfaces.http.view_fields import CreatedAt, ExpiresAt, Items, NextCursor, Timestamp


class ApiKeyView(TypedDict):
    """A key without its token."""

    id: Annotated[str, "Id of the key."]
    name: Annotated[str, "Name of the key."]
    role: Annotated[Role, "What the key may do; each role includes the roles before it."]
    custom_role: Annotated[str | None, "The custom role in place of `role`, which is `viewer` then; null: none."]
    platform: Annotated[bool, "Whether the key also manages organizations."]
    rate_limit: Annotated[
        RateLimitView | None, "Limit of its requests; null where only the service's own limit applies."
    ]
    created_at: CreatedAt
    expires_at: Annotated[Timestamp | None, "The key is rejected from then on; null: never."]
    last_used_at: Annotated[
        Timestamp | None, "Time of its last request, up to a minute late; null if it was never used."
    ]
    revoked_at: Annotated[Timestamp | None, "Time of its revocation; null while it is valid."]
    person_id: Annotated[str | None, "The user who created it, directly or with another key of theirs; null: none."]


class CreatedApiKeyView(ApiKeyView):
    """A new key; `token` is shown only once."""

    token: Annotated[str, "The key itself: `dgm_…`. It is shown only once."]


class RevokedApiKeyView(TypedDict):
    """A revoked key, and how many of its runs, workflow runs and gateway sessions end with it."""

    id: Annotated[str, "Id of the key."]
    cancelled_runs: Annotated[int, "Number of its runs that are cancelled."]
    cancelled_workflow_runs: Annotated[int, "Number of its workflow runs that are cancelled."]
    revoked_gateway_sessions: Annotated[int, "Number of its gateway sessions that are revoked."]


class ApiKeyPage(TypedDict):
    """A page of keys; `next_cursor` is null on the last one."""

    data: Items[ApiKeyView]
    next_cursor: NextCursor


class SignInLinkView(TypedDict):
    """A link that signs a person in to the console, once."""

    path: Annotated[str, "Path of the link, below the service's address."]
    expires_at: ExpiresAt


def api_key_view(key: ApiKey) -> ApiKeyView:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "custom_role": key.custom_role,
        "platform": key.platform,
        "rate_limit": rate_limit_view(key.rate_limit),
        "created_at": timestamp(key.created_at),
        "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at),
        "revoked_at": _moment(key.revoked_at),
        "person_id": key.person_id,
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def created_api_key_view(created: CreatedApiKey) -> CreatedApiKeyView:
    return {**api_key_view(created.key), "token": created.token}


def revoked_api_key_view(key_id: str, stopped: StoppedWork) -> RevokedApiKeyView:
    return {
        "id": key_id,
        "cancelled_runs": stopped.runs,
        "cancelled_workflow_runs": stopped.workflow_runs,
        "revoked_gateway_sessions": stopped.gateway_sessions,
    }
