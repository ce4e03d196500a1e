"""The column type of words to be found by: text for SQLite's index beside the table, a tsvector in PostgreSQL."""

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType


class _TsVector(UserDefinedType[str]):
    """PostgreSQL's type by its name: its dialect, which has it too, is not loaded for services on SQLite."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """As SQL says it."""
        return "TSVECTOR"


class SearchWords(TypeDecorator[str]):
    """Words of letters and digits with blanks between them, which is also how a tsvector is written. Only searched."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """A tsvector where there are tsvectors."""
        return dialect.type_descriptor(_TsVector() if dialect.name == "postgresql" else Text())
