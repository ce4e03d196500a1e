"""Rows of an INSERT that are sent together, in one statement for several."""

from typing import Any, cast

import pytest
from sqlalchemy import Connection, bindparam, create_engine
from sqlalchemy.dialects.postgresql import insert

from infrastructure.persistence.engine.prepared import Prepared, Result, SendingConnection
from infrastructure.persistence.tables import thread

pytestmark = pytest.mark.requirement("K4")

_columns = [column.name for column in thread.columns]
_row = dict.fromkeys(_columns) | {"new": "{}"}
_conflict = insert(thread).inline().on_conflict_do_update(index_elements=["id"], set_={"metadata": bindparam("new")})
_returning: Any = insert(thread).returning(bindparam("new").label("said"))


class RecordingConnection(SendingConnection):
    """Keeps the statements that it is to send."""

    def __init__(self) -> None:
        self.dialect = create_engine("postgresql+psycopg://").dialect
        self.sent: list[str] = []

    def send(self, statement: str, values: list[Any]) -> Result:
        self.sent.append(statement)
        return cast(Result, None)


@pytest.mark.parametrize("statement", [_conflict, _returning], ids=["on conflict", "returning"])
def test_rows_are_not_sent_together_where_parameters_stand_beside_the_values(statement: Any) -> None:
    prepared, connection = Prepared(statement, columns=_columns, together=True), RecordingConnection()
    prepared.run(cast(Connection, connection), _row)
    with pytest.raises(ValueError, match="cannot be sent together"):
        prepared.run(cast(Connection, connection), _row, _row)
    [alone] = connection.sent
    assert "%(" not in alone
