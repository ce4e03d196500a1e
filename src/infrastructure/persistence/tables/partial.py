"""Indices of some of a table's rows."""

from sqlalchemy import Index, text


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows of which `where` is true. It says so for SQLite alone, as saying it for PostgreSQL would load that
    dialect everywhere: indices are made by the revisions, which say it for both, and not from here."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where))
