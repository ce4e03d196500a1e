"""Named secrets: values that an organization stores once and refers to by name. They cannot be read
back."""

import re
from dataclasses import dataclass
from datetime import datetime

from domain.errors import Violation, invalid
from domain.ids import OrganizationId

MAX_VALUE_BYTES = 64 * 1024
SECRET_UNAVAILABLE = "secret_unavailable"
"""Code of the error for a secret elsewhere that exists, or may exist, and cannot be read now."""
NOT_A_SECRET = "is not the name of a secret, vault:PATH#KEY or file:PATH"
NOT_A_SECRET_HERE = f"{NOT_A_SECRET}, nor person:NAME"
_OF_PERSONS = "person:"

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_SEGMENT = _NAME.pattern
"""No segment begins with a dot, so no path leads upwards."""
_EXTERNAL = re.compile(
    rf"(?P<source>vault):(?P<vault>{_SEGMENT}(?:/{_SEGMENT}){{0,15}})#(?P<key>{_SEGMENT})"
    rf"|file:(?P<file>{_SEGMENT}(?:/{_SEGMENT}){{0,3}})"
)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A reference to the named secret. The value is read when it is needed."""

    name: str


@dataclass(frozen=True, slots=True)
class VaultReference:
    """`vault:PATH#KEY`: a key of a secret in Vault, below the path of the organization."""

    path: str
    key: str


@dataclass(frozen=True, slots=True)
class FileReference:
    """`file:PATH`: a mounted file, in the directory of the organization."""

    path: str


ExternalReference = VaultReference | FileReference
"""A secret that is stored elsewhere, by its name in references."""

SecretValue = str | SecretRef
"""A write-only value: a literal, or a reference to a named secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    organization_id: OrganizationId
    name: str
    created_at: datetime
    updated_at: datetime


def person_secret(reference: str) -> str | None:
    """NAME of `person:NAME`, a secret that each person gives for themself; None for any other
    reference."""
    name = reference.removeprefix(_OF_PERSONS)
    return name if name != reference and is_legal_secret_name(name) else None


def is_legal_secret_name(name: str) -> bool:
    """Whether a name has the form `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`."""
    return _NAME.fullmatch(name) is not None


def external_reference(name: str) -> ExternalReference | None:
    """What the name of a reference says about a secret elsewhere; None for a stored secret."""
    found = _EXTERNAL.fullmatch(name) if ":" in name else None
    if found is None:
        return None
    return FileReference(found["file"]) if found["source"] is None else VaultReference(found["vault"], found["key"])


def is_legal_reference(name: str) -> bool:
    """Whether a reference may name this: a stored secret, `vault:PATH#KEY` or `file:PATH`."""
    return is_legal_secret_name(name) or external_reference(name) is not None


def require_storable(name: str, value: str) -> None:
    """Raise INVALID `secret_invalid` unless a secret may have this name and value. The error never
    quotes the value."""
    wrong = []
    if not is_legal_secret_name(name):
        wrong.append(Violation(path="name", message="must match [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"))
    wrong += violations_of_value("value", value)
    if wrong:
        raise invalid("secret_invalid", "The secret is not valid.", *wrong)


def violations_of_value(path: str, value: str) -> list[Violation]:
    """The violations of a value to store, at `path`. They never quote the value."""
    if not value:
        return [Violation(path=path, message="must not be empty")]
    if len(value.encode("utf-8", "surrogatepass")) > MAX_VALUE_BYTES:
        return [Violation(path=path, message=f"must not be larger than {MAX_VALUE_BYTES} bytes")]
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        return [Violation(path=path, message="must be text without NUL characters")]
    return []


def violations_of(path: str, value: SecretValue, *, of_persons: bool = False) -> list[Violation]:
    """The violations of a write-only value at `path`. `of_persons`: it may be a secret that each
    person gives."""
    if not isinstance(value, SecretRef) or is_legal_reference(value.name):
        return []
    if of_persons and person_secret(value.name) is not None:
        return []
    return [Violation(path=f"{path}.secret", message=NOT_A_SECRET_HERE if of_persons else NOT_A_SECRET)]
