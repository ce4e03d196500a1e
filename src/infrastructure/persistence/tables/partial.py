"""Partial indexes."""

from sqlalchemy import Index, text


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows for which `where` is true. The condition is given for SQLite only,
    because PostgreSQL's would load its dialect; revisions create the indexes for both."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where))
