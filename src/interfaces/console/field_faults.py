"""Faults by field, for the form to show them at the fields."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from domain.errors import ServiceError, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFaults:
    """`by_field` are sentences by field name; `others` belong to no field."""

    by_field: dict[str, list[str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, violations: Iterable[Violation], field_of: Callable[[str], str | None]) -> "FieldFaults":
        """`field_of` returns the field of a path in the body."""
        faults = cls()
        for fault in violations:
            name = field_of(fault.path)
            if name is None:
                faults.others.append(f"{fault.path}: {fault.message}" if fault.path else fault.message)
            else:
                faults.by_field.setdefault(name, []).append(fault.message)
        return faults

    @classmethod
    def of_refusal(cls, error: ServiceError, field_of: Callable[[str], str | None]) -> "FieldFaults":
        """The faults of an error, or else its detail."""
        return cls.of(error.violations, field_of) or cls(others=[error.detail])

    def within(self, row: str) -> bool:
        """Whether a field of the row (`PREFIX.ROW.`) has a fault."""
        return any(name.startswith(row) for name in self.by_field)

    def __bool__(self) -> bool:
        return bool(self.by_field or self.others)


NO_FAULTS = FieldFaults()
