"""API keys as JSON. The token appears once, in the answer to its creation."""

from typing import TypedDict

from application.identity.create_api_key import CreatedApiKey
from domain.identity.api_key import ApiKey
from domain.threads.message_json import timestamp


class ApiKeyView(TypedDict):
    """A key without its token."""

    id: str
    name: str
    role: str
    platform: bool
    created_at: str
    revoked_at: str | None


class CreatedApiKeyView(ApiKeyView):
    """A new key; `token` is shown this once."""

    token: str


class ApiKeyPage(TypedDict):
    """A page of keys; `next_cursor` is null on the last one."""

    data: list[ApiKeyView]
    next_cursor: str | None


def api_key_view(key: ApiKey) -> ApiKeyView:
    """A key as JSON."""
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role.value,
        "platform": key.platform,
        "created_at": timestamp(key.created_at),
        "revoked_at": None if key.revoked_at is None else timestamp(key.revoked_at),
    }


def created_api_key_view(created: CreatedApiKey) -> CreatedApiKeyView:
    """A new key as JSON, with its token."""
    return {**api_key_view(created.key), "token": created.token}
