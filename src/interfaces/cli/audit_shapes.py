"""What the CLI reads of a report about the audit trail."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLink:
    """Where the audit trail is first broken."""

    problem: str
    number: int | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey:
    """Seals that cannot be checked."""

    key_id: str
    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """What verifying the audit trail found."""

    ok: bool
    checked: int
    sealed_through: int
    unsealed: int
    pruned_through: int = 0
    sealed_late: int = 0
    first_broken: BrokenLink | None = None
    unknown_keys: list[UnknownKey] = field(default_factory=list)
