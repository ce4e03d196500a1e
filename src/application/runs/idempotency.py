"""Idempotency keys and the runs that they name."""

from dataclasses import dataclass
from datetime import datetime

from application.runs.new_run import KEY_LIFETIME, IdempotencyKey
from domain.errors import ServiceError, Violation, invalid
from domain.ids import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedKey:
    """A key that was used to create `run_id`."""

    body_digest: str
    run_id: RunId
    used_at: datetime


def named_run(key: IdempotencyKey, used: UsedKey | None, *, at: datetime) -> RunId | None:
    """The run that the key names at `at`, within its lifetime; None if the key is free. Raises
    INVALID `idempotency_key_reused` if it was used with another body."""
    if used is None or at - used.used_at >= KEY_LIFETIME:
        return None
    if used.body_digest != key.body_digest:
        raise idempotency_key_reused()
    return used.run_id


def idempotency_key_reused() -> ServiceError:
    return invalid(
        "idempotency_key_reused",
        "The idempotency key was used for another request.",
        Violation(path="Idempotency-Key", message="was used with another body"),
    )
