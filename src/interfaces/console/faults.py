"""Faults of a form, shown beside its fields. Entered text stays in the browser."""

from collections.abc import Mapping
from types import TracebackType

from litestar import Response
from litestar.plugins.htmx import HTMXHeaders

from domain.errors import ErrorKind, ServiceError, Violation
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

FAULTS = "#faults"
"""The element for the list of faults."""
_TAKEN = ("_slug_taken", "_name_taken")


class FormCheck:
    """Context manager that catches faults of fields, to be `shown`, and passes on other failures.
    `fields` maps names of the API to names in the form, `labels` names in the form to what people
    read there."""

    def __init__(self, fields: Mapping[str, str] | None = None, *, labels: Mapping[str, str] | None = None) -> None:
        self._fields = fields or {}
        self._labels = labels or {}
        self._detail = ""
        self._violations: tuple[Violation, ...] = ()

    def __enter__(self) -> "FormCheck":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, ServiceError):
            return False
        taken = error.kind is ErrorKind.CONFLICT and error.code.endswith(_TAKEN)
        if error.kind is not ErrorKind.INVALID and not taken:
            return False
        field = "slug" if error.code.endswith("_slug_taken") else "name" if taken else ""
        self._detail = error.detail
        self._violations = error.violations or (Violation(path=field, message=error.detail),)
        return True

    def name_fields(self, fields: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Set the fields and labels of a form that are looked up only when there are faults."""
        self._fields, self._labels = fields, labels

    def shown(self, pages: Pages, request: ConsoleRequest) -> Response[str]:
        """The list of faults; the page's script marks the fields."""
        headers = {HTMXHeaders.RE_TARGET.value: FAULTS, HTMXHeaders.RE_SWAP.value: "innerHTML"}
        faults = [
            Violation(path=self._fields.get(fault.path, fault.path), message=fault.message)
            for fault in self._violations
        ]
        told = {"detail": self._detail, "violations": faults, "labels": self._labels}
        return pages.show(request, "parts/faults.html", told, status=422, headers=headers)


def entered_version(text: str) -> int:
    """The version at which the form was opened; -1 if absent or invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
