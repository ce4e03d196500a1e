"""Rows of a database as text: what a service of one schema revision has stored, with what it
answered about it."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Connection, LargeBinary, MetaData, Table, func, insert, select

from tests.e2e.saved_times import last_event, moved_answers, moved_tables
from tests.e2e.service import Json
from tests.saved_schema import FOLDER

SAME_AS: Mapping[str, tuple[str, str]] = {
    "0032": ("0031", "adds to runs what a model provider said, which no saved run has"),
    "0034": ("0031", "adds to model providers what no provider from before has"),
    "0039": ("0031", "adds to requests of runs what none from before has"),
    "0040": ("0031", "adds to runs and their requests what none from before has"),
    "0042": ("0031", "adds to schedules what none from before has"),
    "0038": ("0031", "adds to model providers what all from before have alike"),
    "0056": ("0031", "adds to schedules what none from before has"),
    "0054": ("0031", "adds an index"),
    "0107": ("0031", "adds impersonations, of which there were none"),
    "0106": ("0031", "adds sessions of the console, of which there were none"),
    "0083": ("0031", "adds an index"),
    "0109": ("0031", "adds sums of what the saved runs used"),
    "0114": ("0031", "adds an index"),
    "0112": ("0031", "adds rejections of tools, of which there were none, and an index"),
    "0113": ("0031", "adds sums of calls, which begin with those after it"),
    "0102": ("0031", "adds to approvals what none from before has"),
    "0110": ("0031", "adds to threads what none from before has"),
    "0103": ("0031", "adds the team of agents, servers, threads and runs, which none from before has"),
    "0108": ("0031", "adds indexes"),
    "0104": ("0031", "adds the team of workflows and their runs, which none from before has"),
    "0111": ("0031", "adds to organizations what all from before have alike"),
    "0101": ("0031", "adds custom roles, of which there were none"),
    "0129": ("0031", "adds to organizations and deliveries what none from before has"),
    "0057": ("0031", "adds to agents what none from before has"),
    "0050": ("0031", "adds to runs what all from before have alike, and to schedules what none has"),
    "0044": ("0031", "adds to requests of runs what none from before has"),
    "0035": ("0031", "adds to messages what no message from before has"),
    "0048": ("0031", "adds to tools of workflow runs what those from before hold in another column"),
    "0049": ("0031", "adds to installed servers what none from before has"),
    "0055": ("0031", "adds to requests of runs what none from before has"),
    "0060": ("0031", "adds identity providers and users, of which there were none"),
    "0066": ("0031", "adds what processes share of limits, which is nothing at rest"),
    "0068": ("0031", "adds how far audit entries were sent, and none were"),
    "0067": ("0031", "adds to the revision of the schema what no schema from before has"),
    "0097": ("0031", "adds to schedules what none from before has"),
    "0079": ("0031", "adds addresses for tasks of A2A, of which there were none"),
    "0082": ("0031", "adds texts of workflows, which none from before has"),
    "0076": ("0031", "adds grants of persons, of which there were none"),
    "0075": ("0031", "adds people and groups of directories, of which there were none"),
    "0077": ("0031", "adds groups of organizations, of which there were none, and columns that are empty"),
    "0074": ("0031", "adds to identity providers what none from before has"),
    "0069": ("0031", "divides tables, whose rows stay"),
    "0078": ("0031", "divides tables, whose rows stay"),
    "0072": ("0031", "adds what people granted to clients of the gateway, and none did"),
    "0051": ("0031", "adds to model providers what no provider from before has"),
    "0037": ("0031", "adds to approvals what those from before do not have"),
}
"""Revisions without a file of their own: whose file has what they store, and why."""
_NOT_STORED = ("alembic_version", "source_words")
"""Beginnings of tables that migrations and databases fill themselves."""
_SHARED = "audit_key"
"""Named by what it holds: two services with the same secret key have the same row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRuns:
    """What one file holds. `runs` names each run by its story, `answers` has the API's answers by
    path, `tables` the columns and rows of each table, parents first. Paths of the machine stand as
    `{name}`."""

    revision: str
    token: str
    runs: Mapping[str, str]
    answers: Mapping[str, Any]
    tables: Mapping[str, Json]

    def write(self, folder: Path, places: Mapping[str, str]) -> Path:
        """A line for each row and each answer, so that a change can be read."""
        parts = [f'"revision": {json.dumps(self.revision)}', f'"token": {json.dumps(self.token)}']
        parts.append(f'"runs": {json.dumps(self.runs, indent=1)}')
        parts.append(_block("answers", self.answers))
        tables = [
            f'{json.dumps(name)}: {{"columns": {json.dumps(table["columns"])}, "rows": [\n'
            + ",\n".join(json.dumps(row, ensure_ascii=False) for row in table["rows"])
            + "\n]}"
            for name, table in self.tables.items()
        ]
        parts.append('"tables": {\n' + ",\n".join(tables) + "\n}")
        whole = "{\n" + ",\n".join(parts) + "\n}\n"
        for name, place in places.items():
            whole = whole.replace(place, "{" + name + "}")
        path = folder / f"{self.revision}.json"
        path.write_text(whole, encoding="utf-8")
        return path

    @classmethod
    def load(cls, revision: str, places: Mapping[str, str], *, stopped_at: datetime) -> "SavedRuns":
        """The file of a revision, with these paths in it, as if its service had stopped at this
        moment (to the second)."""
        whole = (FOLDER / f"{revision}.json").read_text(encoding="utf-8")
        for name, place in places.items():
            whole = whole.replace("{" + name + "}", place)
        saved = cls(**json.loads(whole))
        return saved.moved(stopped_at.replace(microsecond=0) - last_event(saved.tables))

    def moved(self, by: timedelta) -> "SavedRuns":
        """The same runs at another time: order and distances stay. The audit trail stays where it
        is, as it is sealed."""
        last = last_event(self.tables)
        days = (last + by).toordinal() - last.toordinal()
        return replace(self, answers=moved_answers(self.answers, by), tables=moved_tables(self.tables, by, days))

    def column(self, table: str, name: str) -> list[Any]:
        """Values of a column in the rows of a table, without nulls."""
        place = self.tables[table]["columns"].index(name)
        return [row[place] for row in self.tables[table]["rows"] if row[place] is not None]

    def insert(self, connection: Connection) -> None:
        """Add all rows to a database that stands at this revision."""
        metadata = MetaData()
        metadata.reflect(connection, only=list(self.tables))
        for name, saved in self.tables.items():
            table = metadata.tables[name]
            rows = [_from_json(table, dict(zip(saved["columns"], row, strict=True))) for row in saved["rows"]]
            if name == _SHARED:
                known = set(connection.execute(select(table.c.id)).scalars())
                rows = [row for row in rows if row["id"] not in known]
            if name == "source_chunk":
                # Its numbers count up in each database; PostgreSQL takes them from a sequence.
                rows = [{column: value for column, value in row.items() if column != "id"} for row in rows]
            if rows:
                connection.execute(insert(table), rows)


def stored_tables(connection: Connection, *, token_hash: str) -> dict[str, Json]:
    """All rows of a database. The first key gets this hash of its token."""
    metadata = MetaData()
    metadata.reflect(connection)
    found: dict[str, Json] = {}
    for table in metadata.sorted_tables:
        if table.name.startswith(_NOT_STORED):
            continue
        assert connection.execute(select(func.count()).select_from(table)).scalar_one() < 2000, table.name
        keys = [column.name for column in table.primary_key]
        rows = [dict(row) for row in connection.execute(select(table).order_by(*keys)).mappings()]
        if table.name == "api_key":
            [first] = [row for row in rows if row["platform"]]
            first["token_hash"] = token_hash
        columns = [column.name for column in table.columns]
        if rows:
            found[table.name] = {"columns": columns, "rows": [list(_to_json(table, row)) for row in rows]}
    return found


def _block(name: str, entries: Mapping[str, Any]) -> str:
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items()]
    return f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}"


def _to_json(table: Table, row: Mapping[str, Any]) -> Iterator[object]:
    for column in table.columns:
        value = row[column.name]
        yield base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _from_json(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(table, name, value) for name, value in row.items()}


def _value(table: Table, name: str, value: Any) -> Any:
    kind = table.c[name].type
    if value is not None and isinstance(kind, LargeBinary):
        return base64.b64decode(value)
    return bool(value) if value is not None and isinstance(kind, Boolean) else value
