"""What is wrong with what was entered, field by field, for the form to show where it stands."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from domain.errors import ServiceError, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFaults:
    """`by_field` are sentences by the name of a field, `others` those that belong to none."""

    by_field: dict[str, list[str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, violations: Iterable[Violation], field_of: Callable[[str], str | None]) -> "FieldFaults":
        """`field_of` names the field that a path in the body means."""
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
        """What a refusal says of fields, or else what it says."""
        return cls.of(error.violations, field_of) or cls(others=[error.detail])

    def within(self, row: str) -> bool:
        """Whether a field of a row (`PREFIX.ROW.`) has one."""
        return any(name.startswith(row) for name in self.by_field)

    def __bool__(self) -> bool:
        return bool(self.by_field or self.others)


NO_FAULTS = FieldFaults()
