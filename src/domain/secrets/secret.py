"""Named secrets: values an organization stores once and refers to by name; nobody can read them back."""

import re
from dataclasses import dataclass
from datetime import datetime

from domain.errors import Violation, invalid
from domain.ids import OrganizationId

MAX_VALUE_BYTES = 64 * 1024

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Stands for the value of the secret of that name, which is read when it is needed."""

    name: str


SecretValue = str | SecretRef
"""A value that is write-only: given itself, or by the name of a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A named secret without its value."""

    organization_id: OrganizationId
    name: str
    created_at: datetime
    updated_at: datetime


def is_legal_secret_name(name: str) -> bool:
    """Whether a name has the form `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`."""
    return _NAME.fullmatch(name) is not None


def require_storable(name: str, value: str) -> None:
    """Raise INVALID `secret_invalid` unless a secret may have this name and value. The value is never repeated."""
    wrong = []
    if not is_legal_secret_name(name):
        wrong.append(Violation(path="name", message="must match [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"))
    if not value:
        wrong.append(Violation(path="value", message="must not be empty"))
    elif len(value.encode("utf-8", "surrogatepass")) > MAX_VALUE_BYTES:
        wrong.append(Violation(path="value", message=f"must not be larger than {MAX_VALUE_BYTES} bytes"))
    elif "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        wrong.append(Violation(path="value", message="must be text without NUL characters"))
    if wrong:
        raise invalid("secret_invalid", "The secret is not valid.", *wrong)


def violations_of(path: str, value: SecretValue) -> list[Violation]:
    """What is wrong with a write-only value at `path`."""
    if isinstance(value, SecretRef) and not is_legal_secret_name(value.name):
        return [Violation(path=f"{path}.secret", message="is not the name of a secret")]
    return []
