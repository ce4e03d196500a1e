"""Secrets as JSON: never their values."""

from typing import TypedDict

from domain.secrets.secret import Secret
from domain.threads.message_json import timestamp


class SecretView(TypedDict):
    """A secret without its value."""

    name: str
    created_at: str
    updated_at: str


class SecretPage(TypedDict):
    """A page of secrets; `next_cursor` is null on the last one."""

    data: list[SecretView]
    next_cursor: str | None


class RotationView(TypedDict):
    """The result of one step; the rotation is complete when nothing remains."""

    reencrypted: int
    remaining: int


def secret_view(secret: Secret) -> SecretView:
    return {
        "name": secret.name,
        "created_at": timestamp(secret.created_at),
        "updated_at": timestamp(secret.updated_at),
    }
