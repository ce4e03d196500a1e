"""What is wrong with a form, told beside its fields; what was entered stays in the browser, and is not sent back."""

from collections.abc import Mapping
from types import TracebackType

from litestar import Response
from litestar.plugins.htmx import HTMXHeaders

from domain.errors import ErrorKind, ServiceError, Violation
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

FAULTS = "#faults"
"""Where forms have the list of what is wrong."""
_TAKEN = ("_slug_taken", "_name_taken")


class FormCheck:
    """A block that reads a form: what says which fields are wrong is kept to be `shown`, every other failure is raised.
    `fields` are names in the form of what is called otherwise in the API."""

    def __init__(self, fields: Mapping[str, str] | None = None) -> None:
        self._fields = fields or {}
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

    def shown(self, pages: Pages, request: ConsoleRequest) -> Response[str]:
        """The list; the page's script marks the fields."""
        headers = {HTMXHeaders.RE_TARGET.value: FAULTS, HTMXHeaders.RE_SWAP.value: "innerHTML"}
        faults = [
            Violation(path=self._fields.get(fault.path, fault.path), message=fault.message)
            for fault in self._violations
        ]
        told = {"detail": self._detail, "violations": faults}
        return pages.show(request, "parts/faults.html", told, status=422, headers=headers)


def entered_version(text: str) -> int:
    """The version that a form was opened at; one that never is, if the form does not say."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
