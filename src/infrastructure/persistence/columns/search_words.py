"""The column type of search words: text for SQLite's separate index, a tsvector in PostgreSQL."""

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType


class _TsVector(UserDefinedType[str]):
    """PostgreSQL's type by its name, so that services on SQLite do not load its dialect."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "TSVECTOR"


class SearchWords(TypeDecorator[str]):
    """Words of letters and digits separated by blanks, which is also the text form of a tsvector.
    Only searched."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        return dialect.type_descriptor(_TsVector() if dialect.name == "postgresql" else Text())
