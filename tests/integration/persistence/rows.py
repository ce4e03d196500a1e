"""A row in every table for an organization, made from the tables' own descriptions: a new table has
one without being named here."""

from datetime import UTC, datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, LargeBinary, Table

from domain.ids import OrganizationId
from infrastructure.persistence.columns.column_types import JsonText, Moment, NanoUsd, PlainText
from infrastructure.persistence.columns.search_words import SearchWords
from infrastructure.persistence.tables import metadata

Row = dict[str, object]

OF_NOBODY = frozenset({"audit_key", "limit_lease"})
"""What belongs to the installation and not to an organization."""

_MOMENT = datetime(2026, 11, 21, 12, tzinfo=UTC)
_EXACTLY: dict[str, object] = {"run.status": "queued"}


def row_in_every_table(organization_id: OrganizationId, number: int) -> dict[str, Row]:
    """Rows that refer to each other, by table, parents first. `number` tells those of two
    organizations apart."""
    rows: dict[str, Row] = {}
    for table in metadata.sorted_tables:
        if table.name not in OF_NOBODY:
            rows[table.name] = {
                column.name: _value(column, organization_id, number, rows)
                for column in table.columns
                if not column.nullable
            }
    return rows


def organization_column(table: Table) -> "Column[str]":
    """What says whose a row is."""
    return table.c.id if table.name == "organization" else table.c.organization_id


def _value(column: "Column[object]", organization_id: OrganizationId, number: int, rows: dict[str, Row]) -> object:
    if column is organization_column(column.table):
        return organization_id
    for key in column.foreign_keys:
        return rows[key.column.table.name][key.column.name]
    name = f"{column.table.name}.{column.name}"
    return _EXACTLY[name] if name in _EXACTLY else _of_type(column, f"{name}-{organization_id}", number)


def _of_type(column: "Column[object]", text: str, number: int) -> object:
    match column.type:
        case PlainText():
            return text
        case SearchWords():
            return "words"
        case Moment():
            return _MOMENT
        case NanoUsd():
            return Decimal(number)
        case JsonText():
            return {}
        case Boolean():
            return False
        case Integer() | BigInteger():
            return number
        case Double():
            return float(number)
        case LargeBinary():
            return b"sealed"
        case _:
            raise TypeError(f"no value for {column.table}.{column.name}")
