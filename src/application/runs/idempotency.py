"""What is refused of idempotency keys."""

from domain.errors import ServiceError, Violation, invalid


def idempotency_key_reused() -> ServiceError:
    """The key named another request within its lifetime."""
    return invalid(
        "idempotency_key_reused",
        "The idempotency key was used for another request.",
        Violation(path="Idempotency-Key", message="was used with another body"),
    )
