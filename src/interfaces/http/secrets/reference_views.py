"""Views of values that may be references to named secrets."""

from typing import Annotated, TypedDict

from domain.secrets.secret import SecretRef, SecretValue

HIDDEN = "[hidden]"
"""Shown in place of a stored secret."""


class SecretReferenceView(TypedDict):
    """A reference to a named secret."""

    secret: Annotated[str, "The name of a secret."]


WriteOnlyView = str | SecretReferenceView


def write_only_view(value: SecretValue) -> WriteOnlyView:
    """The name of a secret is shown, a value never."""
    return {"secret": value.name} if isinstance(value, SecretRef) else HIDDEN
