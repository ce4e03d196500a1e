"""Texts that a database cannot hold, in statements that go straight to the driver."""

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, select

from infrastructure.persistence.columns.column_types import PlainText
from infrastructure.persistence.engine.prepared import prepared_insert

MANY = Table("many", MetaData(), Column("id", Integer), *(Column(name, PlainText) for name in ("a", "b", "c")))
ONE = Table("one", MetaData(), Column("id", Integer), Column("a", PlainText))
NONE = Table("none", MetaData(), Column("id", Integer))


def stored(table: Table, row: dict[str, object]) -> dict[str, object]:
    with create_engine("sqlite://").connect() as connection:
        table.create(connection)
        prepared_insert(table).run(connection, row)
        return dict(connection.execute(select(table)).mappings().one())


@pytest.mark.parametrize("place", ["a", "b", "c"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("\ud800", "\ufffd\ufffd\ufffd"),
        ("Grüße 🐘", "Grüße 🐘"),
        ("", ""),
        (None, None),
    ],
    ids=["NUL", "lone surrogate", "beyond ASCII", "nothing in it", "none"],
)
def test_whatever_stands_beside_it_a_text_is_made_storable(place: str, given: str | None, kept: str | None) -> None:
    plain = {"id": 1, "a": "plain", "b": None, "c": ""}
    assert stored(MANY, {**plain, place: given}) == {**plain, place: kept}


def test_a_row_may_have_one_text_or_none() -> None:
    assert stored(ONE, {"id": 1, "a": "a\0b"}) == {"id": 1, "a": "a\ufffdb"}
    assert stored(ONE, {"id": 1, "a": "ab"}) == {"id": 1, "a": "ab"}
    assert stored(NONE, {"id": 1}) == {"id": 1}
