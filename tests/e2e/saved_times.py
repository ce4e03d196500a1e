"""Times of a saved run: they move together, so that a file is as old as a test wants it on whatever
day the test is run."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.service import Json

SEALED_TABLES = ("audit_event", "audit_seal", "audit_head")
SEALED_ANSWER = "/audit-events"
"""The audit trail keeps its times: seals are made over them."""
_A_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_DAY = "day"


def last_event(tables: Mapping[str, Json]) -> datetime:
    """When the service that made a file stopped, as far as its runs show: the time of their last
    event, to the second."""
    events = tables["run_event"]
    column = events["columns"].index("at")
    return datetime.fromtimestamp(max(row[column] for row in events["rows"]) // 1_000_000, UTC)


def moved_tables(tables: Mapping[str, Json], by: timedelta, days: int) -> dict[str, Json]:
    """Rows whose microseconds, texts and JSON say times that are later by `by`, and days that are
    later by `days`."""
    return {
        name: table
        if name in SEALED_TABLES
        else {**table, "rows": [_row(table["columns"], row, by, days) for row in table["rows"]]}
        for name, table in tables.items()
    }


def moved_answers(answers: Mapping[str, Any], by: timedelta) -> dict[str, Any]:
    """Answers about the same rows."""
    return {path: answer if path == SEALED_ANSWER else _moved(answer, by) for path, answer in answers.items()}


def _row(columns: list[str], row: list[Any], by: timedelta, days: int) -> list[Any]:
    return [_column(name, value, by, days) for name, value in zip(columns, row, strict=True)]


def _column(name: str, value: Any, by: timedelta, days: int) -> Any:
    if isinstance(value, int) and (name == "at" or name.endswith("_at")):
        return value + by // timedelta(microseconds=1)
    return value + days if name == _DAY else _moved(value, by)


def _moved(value: Any, by: timedelta) -> Any:
    match value:
        case dict():
            return {key: _moved(entry, by) for key, entry in value.items()}
        case list():
            return [_moved(entry, by) for entry in value]
        case str():
            return _A_TIME.sub(lambda found: _later(found[0], by), value)
        case _:
            return value


def _later(time: str, by: timedelta) -> str:
    return f"{datetime.fromisoformat(time) + by:%Y-%m-%dT%H:%M:%S.%fZ}"
