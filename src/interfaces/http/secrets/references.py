"""`{"secret": NAME}`: references to named secrets in bodies."""

from typing import Annotated, ClassVar

from pydantic import Discriminator, Tag

from domain.json_value import JsonObject
from domain.secrets.secret import SecretRef, SecretValue
from interfaces.http.bodies import Body
from interfaces.http.secrets.reference_views import SecretReferenceView


class SecretReference(Body):
    """A reference to a named secret, read on use."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"secret": "GITHUB_TOKEN"},)

    shown_as: ClassVar[type] = SecretReferenceView

    secret: str

    def to_domain(self) -> SecretRef:
        return SecretRef(self.secret)


def _form(given: object) -> str:
    return "reference" if isinstance(given, dict | SecretReference) else "value"


WriteOnly = Annotated[
    Annotated[str, Tag("value")] | Annotated[SecretReference, Tag("reference")],
    # Reports faults once, for the matching form.
    Discriminator(_form),
]
"""A write-only value, or a reference to a named secret."""


def secret_value(given: str | SecretReference) -> SecretValue:
    """The value, or the domain's reference."""
    return given.to_domain() if isinstance(given, SecretReference) else given
