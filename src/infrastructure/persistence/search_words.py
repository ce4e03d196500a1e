"""The column type of words to be found by: text for SQLite's index beside the table, a tsvector in PostgreSQL."""

from sqlalchemy import Dialect, Text
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.types import TypeDecorator, TypeEngine


class SearchWords(TypeDecorator[str]):
    """Words of letters and digits with blanks between them, which is also how a tsvector is written. Only searched."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """A tsvector where there are tsvectors."""
        return dialect.type_descriptor(TSVECTOR() if dialect.name == "postgresql" else Text())
