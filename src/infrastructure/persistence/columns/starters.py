"""Conditions on who started what, as themselves or acting as another user."""

from sqlalchemy import ColumnElement, func, or_


def is_started_by(
    column: ColumnElement[str], starter: str | ColumnElement[str], as_others: str | ColumnElement[str]
) -> ColumnElement[bool]:
    """`as_others` is what the ids under which the starter acts as others begin with. No LIKE: ids
    contain `_`."""
    return or_(column == starter, func.substr(column, 1, func.length(as_others)) == as_others)
