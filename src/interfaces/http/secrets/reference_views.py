"""How answers show a value that may be the one of a named secret."""

from typing import TypedDict

from domain.secrets.secret import SecretRef, SecretValue

HIDDEN = "[hidden]"
"""What is shown in place of a stored secret."""


class SecretReferenceView(TypedDict):
    """The value of a named secret."""

    secret: str


WriteOnlyView = str | SecretReferenceView


def write_only_view(value: SecretValue) -> WriteOnlyView:
    """The name of a secret is shown, a value never."""
    return {"secret": value.name} if isinstance(value, SecretRef) else HIDDEN
