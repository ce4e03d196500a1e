"""API keys as JSON. Only the response to the creation contains the token."""

from datetime import datetime
from typing import TypedDict

from application.identity.create_api_key import CreatedApiKey
from application.revocation.stopped_work import StoppedWork
from domain.identity.api_key import ApiKey
from domain.threads.message_json import timestamp
from interfaces.http.rate_views import RateLimitView, rate_limit_view


class ApiKeyView(TypedDict):
    """A key without its token."""

    id: str
    name: str
    role: str
    platform: bool
    rate_limit: RateLimitView | None
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


class CreatedApiKeyView(ApiKeyView):
    """A new key; `token` is shown only once."""

    token: str


class RevokedApiKeyView(TypedDict):
    """A revoked key, and how many of its runs, workflow runs and gateway sessions end with it."""

    id: str
    cancelled_runs: int
    cancelled_workflow_runs: int
    revoked_gateway_sessions: int


class ApiKeyPage(TypedDict):
    """A page of keys; `next_cursor` is null on the last one."""

    data: list[ApiKeyView]
    next_cursor: str | None


class SignInLinkView(TypedDict):
    """A link that signs a person in to the console, once. `path` is below the service's address."""

    path: str
    expires_at: str


def api_key_view(key: ApiKey) -> ApiKeyView:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role.value,
        "platform": key.platform,
        "rate_limit": rate_limit_view(key.rate_limit),
        "created_at": timestamp(key.created_at),
        "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at),
        "revoked_at": _moment(key.revoked_at),
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
