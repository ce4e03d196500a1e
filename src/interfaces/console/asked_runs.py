"""What the address of the list of runs asks for: conditions, an order, and columns."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from application.runs.ports import RunFilter, RunOrder
from domain.ids import AgentId
from domain.runs.run import RunStatus

COLUMNS = {
    "agent": "Agent",
    "model": "Model",
    "state": "State",
    "starter": "Started by",
    "duration": "Duration",
    "cost": "Cost",
    "tokens": "Tokens",
    "calls": "Tool calls",
    "thread": "Conversation",
    "metadata": "Metadata",
    "created": "Created",
}
"""Columns beside what was asked, in their order, with their titles."""
USUAL = ("agent", "state", "starter", "duration", "cost", "created")
SORTS = {
    "duration": RunOrder.LONGEST,
    "cost": RunOrder.COSTLIEST,
    "tokens": RunOrder.MOST_TOKENS,
    "created": RunOrder.NEWEST,
}
"""The orders by a column; by the time of creation there is the opposite one, too."""
_SHOWN = frozenset({"order", "column"})
"""What restricts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRuns:
    """All conditions must hold. `since` and `until` are days, inclusive. `column` is empty for the
    usual ones."""

    status: str = ""
    agent: str = ""
    text: str = ""
    tool: str = ""
    model: str = ""
    error: str = ""
    metadata: str = ""
    started_by: str = ""
    since: str = ""
    until: str = ""
    order: str = ""
    column: tuple[str, ...] = ()

    @property
    def wanted(self) -> RunFilter:
        """The filter, where empty fields do not restrict."""
        name, _, value = self.metadata.partition("=")
        return RunFilter(
            status=RunStatus(self.status) if self.status in set(RunStatus) else None,
            agent_id=AgentId(self.agent) if self.agent else None,
            text=self.text.strip() or None,
            tool=self.tool.strip() or None,
            model=self.model.strip() or None,
            error=self.error.strip() or None,
            started_by=self.started_by.strip() or None,
            metadata=(name.strip(), value.strip()) if name.strip() else None,
            since=begin_of(self.since),
            until=begin_of(self.until, days=1),
        )

    @property
    def sorted_by(self) -> RunOrder:
        return RunOrder(self.order) if self.order in set(RunOrder) else RunOrder.NEWEST

    @property
    def columns(self) -> tuple[str, ...]:
        """In their order."""
        return tuple(name for name in COLUMNS if name in (self.column or USUAL))

    def toggled(self, name: str) -> str:
        """The query string with this column, or without it if it is shown."""
        chosen = tuple(each for each in COLUMNS if (each in self.columns) is not (each == name))
        return replace(self, column=() if chosen == USUAL else chosen).query

    @property
    def faults(self) -> list[str]:
        """What is wrong with fields that would not restrict, sort or show as meant."""
        return [fault for is_wrong, fault in self._checks() if is_wrong]

    def _checks(self) -> Iterable[tuple[object, str]]:
        yield self.status and self.status not in set(RunStatus), f"“{self.status}” is not a state of runs."
        for day in (self.since, self.until):
            yield day and begin_of(day) is None, f"“{day}” is not a day as YYYY-MM-DD."
        yield self.metadata and not self.metadata.partition("=")[0].strip(), "Metadata needs a name, as NAME=VALUE."
        yield self.metadata and "=" not in self.metadata, "Metadata is searched as NAME=VALUE."
        yield self.order and self.order not in set(RunOrder), f"“{self.order}” is not an order of runs."
        for name in self.column:
            yield name not in COLUMNS, f"“{name}” is not a column."

    @property
    def query(self) -> str:
        """All of it as a query string."""
        return urlencode({name: value for name, value in asdict(self).items() if value}, doseq=True)

    @property
    def restricts(self) -> bool:
        return any(value for name, value in asdict(self).items() if name not in _SHOWN)

    def by(self, column: str) -> str:
        """The query string that sorts by this column, or no longer does."""
        order = SORTS[column]
        if order is not self.sorted_by:
            following = "" if order is RunOrder.NEWEST else order.value
        else:
            following = RunOrder.OLDEST.value if order is RunOrder.NEWEST else ""
        return replace(self, order=following).query

    @property
    def searches(self) -> bool:
        """Whether texts are searched."""
        return bool(self.text or self.tool or self.metadata)

    @property
    def is_indexed(self) -> bool:
        """Whether an index has the runs; otherwise the list is not repeated by itself."""
        return not (self.searches or self.wanted.is_walked)

    @property
    def is_bounded(self) -> bool:
        """Whether only the newest runs are searched or sorted."""
        return self.searches or self.sorted_by.is_by_figure

    @property
    def is_detailed(self) -> bool:
        """Whether one of the fields restricts that are folded otherwise."""
        return bool(
            self.tool or self.model or self.error or self.metadata or self.started_by or self.since or self.until
        )


def begin_of(day: str, *, days: int = 0) -> datetime | None:
    """The begin of a day in UTC, or of one so many days later; None for what is no day."""
    try:
        return datetime.combine(date.fromisoformat(day), time(), UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        return None
