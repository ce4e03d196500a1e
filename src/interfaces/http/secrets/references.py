"""`{"secret": NAME}`: how a body says that a value is the one of a named secret."""

from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag

from domain.json_value import JsonObject
from domain.secrets.secret import SecretRef, SecretValue
from interfaces.http.bodies import Body


class SecretReference(Body):
    """The value of a named secret, read when it is needed."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"secret": "GITHUB_TOKEN"},)

    secret: str = Field(description="The name of a secret.")

    def to_domain(self) -> SecretRef:
        """The reference."""
        return SecretRef(self.secret)


def _form(given: object) -> str:
    return "reference" if isinstance(given, dict | SecretReference) else "value"


WriteOnly = Annotated[
    Annotated[str, Tag("value")] | Annotated[SecretReference, Tag("reference")],
    # So that what is wrong is said once, of the form that was meant.
    Discriminator(_form),
]
"""A value that is never shown again, or the name of one."""


def secret_value(given: str | SecretReference) -> SecretValue:
    """The value, or what stands for it."""
    return given.to_domain() if isinstance(given, SecretReference) else given
