"""Secrets as JSON: never their values."""

from typing import Annotated, TypedDict

from domain.secrets.secret import Secret
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, UpdatedAt


class SecretView(TypedDict):
    """A secret without its value."""

    name: Annotated[str, "Name of the secret; `{'secret': NAME}` refers to it."]
    created_at: CreatedAt
    updated_at: UpdatedAt


class SecretPage(TypedDict):
    """A page of secrets; `next_cursor` is null on the last one."""

    data: Items[SecretView]
    next_cursor: NextCursor


class RotationView(TypedDict):
    """The result of one step; the rotation is complete when nothing remains."""

    reencrypted: Annotated[int, "Number of values that this step encrypted with the newest key."]
    remaining: Annotated[int, "Number of values that are still to be encrypted with it."]


def secret_view(secret: Secret) -> SecretView:
    return {
        "name": secret.name,
        "created_at": timestamp(secret.created_at),
        "updated_at": timestamp(secret.updated_at),
    }
