"""What became of an imported entry."""

from enum import StrEnum


class ImportOutcome(StrEnum):
    """Whether the entry became a server."""

    CREATED = "created"
    SKIPPED = "skipped"
