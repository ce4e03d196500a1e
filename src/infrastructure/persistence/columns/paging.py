"""Keyset pages: inserts between two requests neither repeat nor skip entries."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    func,
    literal,
    select,
    tuple_,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from application.system.pages import SEARCHED, Page, PageRequest
from domain.errors import ServiceError, Violation, invalid
from domain.ids import OrganizationId
from domain.teams import Teams
from infrastructure.persistence.columns.column_types import micros, moment_of
from infrastructure.persistence.columns.page_bytes import StoredSize, fitting
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.runtime.json_text import decode, encode

ItemT = TypeVar("ItemT")
AnyRow = Row[*tuple[Any, ...]]
"""A row whose columns are known to its statement, not to the type checker."""

_MAX_BIGINT = 2**63 - 1


def encode_cursor(key: int, identifier: str = "") -> str:
    """An opaque cursor: a sort key and an id for equal keys."""
    return base64.urlsafe_b64encode(encode([key, identifier]).encode()).decode()


def decode_cursor(cursor: str) -> tuple[int, str]:
    """The inverse of `encode_cursor`. Raises INVALID `cursor_invalid`."""
    try:
        match decode(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()):
            case [int() as key, str() as identifier] if 0 <= key <= _MAX_BIGINT:
                return key, identifier
            case _:
                raise _cursor_invalid()
    except (binascii.Error, ValueError) as error:
        raise _cursor_invalid() from error


def newest_page(
    statement: Select[Any],
    request: PageRequest,
    columns: ReadOnlyColumnCollection[str, Any],
    convert: Callable[[AnyRow], ItemT],
    *,
    identifier: str = "id",
    heavy: tuple[Column[Any], ...] = (),
    keys: Select[Any] | None = None,
    owner: ColumnElement[Any] | None = None,
) -> Callable[[Connection], Page[ItemT]]:
    """A unit that reads a page by `created_at` and `identifier` of these columns, as `newest_first`
    does. The `owner` is by default their column `team`."""
    return partial(
        newest_first,
        statement=statement,
        request=request,
        moment=columns.created_at,
        identifier=columns[identifier],
        convert=convert,
        heavy=heavy,
        keys=keys,
        owner=columns.get("team") if owner is None else owner,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """What a page is sorted by: a selected column, and its values as the numbers of cursors, both
    ways."""

    column: ColumnElement[Any]
    number_of: Callable[[Any], int] = int
    value_of: Callable[[int], Any] = int
    ascending: bool = False


def newest_first(
    connection: Connection,
    statement: Select[Any],
    request: PageRequest,
    *,
    moment: ColumnElement[datetime],
    identifier: ColumnElement[str],
    convert: Callable[[AnyRow], ItemT],
    heavy: tuple[Column[Any], ...] = (),
    keys: Select[Any] | None = None,
    owner: ColumnElement[Any] | None = None,
) -> Page[ItemT]:
    """A page by descending `moment`, then id, as `sorted_page` reads it."""
    return sorted_page(
        connection,
        statement,
        request,
        sort=by_moment(moment),
        identifier=identifier,
        convert=convert,
        heavy=heavy,
        keys=keys,
        owner=owner,
    )


def by_moment(moment: ColumnElement[datetime], *, ascending: bool = False) -> Sort:
    return Sort(column=moment, number_of=micros, value_of=_moment, ascending=ascending)


def sorted_page(
    connection: Connection,
    statement: Select[Any],
    request: PageRequest,
    *,
    sort: Sort,
    identifier: ColumnElement[str],
    convert: Callable[[AnyRow], ItemT],
    heavy: tuple[Column[Any], ...] = (),
    keys: Select[Any] | None = None,
    owner: ColumnElement[Any] | None = None,
) -> Page[ItemT]:
    """Rows of `statement` in this order, then by id. Both columns must be selected. Texts of
    `heavy` columns may end the page before its limit. `keys` selects the ids of the same rows from
    one table: those of the page are taken there, before other tables are joined. `owner` is the
    team that owns a row; without it, rows belong to the organization."""
    seen = () if owner is None else seen_by(request.teams, owner)
    columns = (sort.column, identifier)
    order = columns if sort.ascending else tuple(column.desc() for column in columns)
    ordered = (statement if keys is None else keys).where(*seen).order_by(*order)
    if request.cursor is not None:
        number, after = decode_cursor(request.cursor)
        key = tuple_(
            bindparam("cursor_at", sort.value_of(number), type_=sort.column.type),
            bindparam("cursor_id", after, type_=identifier.type),
        )
        ordered = ordered.where(tuple_(*columns) > key if sort.ascending else tuple_(*columns) < key)

    def first(count: int) -> Select[Any]:
        page = ordered.limit(count)
        return page if keys is None else statement.where(identifier.in_(page)).order_by(*order)

    limit = request.limit
    if heavy:
        size = reduce(add, (func.coalesce(StoredSize(column), 0) for column in heavy))
        sizes = first(limit).with_only_columns(size, maintain_column_froms=True)
        with connection.execute(sizes) as found:
            limit = fitting(found.scalars())
    rows = connection.execute(first(limit + 1)).all()
    return page_of(
        rows[:limit],
        convert,
        more=len(rows) > limit,
        cursor=lambda row: encode_cursor(sort.number_of(row._mapping[sort.column]), row._mapping[identifier]),
    )


def among_newest(
    table: Table, organization_id: OrganizationId, *, until: datetime | None = None, teams: Teams = None
) -> ColumnElement[bool]:
    """Whether a row is among the `SEARCHED` newest of the organization that were created before
    `until` and, with `teams`, are seen. Their index bounds what conditions without one read."""
    newest = table.alias("newest")
    mine = newest.c.organization_id == organization_id
    wanted = mine if until is None else and_(mine, newest.c.created_at < until)
    if teams is not None:
        wanted = and_(wanted, *seen_by(teams, newest.c.team))
    oldest = select(newest.c.created_at).where(wanted).order_by(newest.c.created_at.desc(), newest.c.id.desc())
    since = oldest.offset(SEARCHED - 1).limit(1).scalar_subquery()
    return table.c.created_at >= func.coalesce(since, literal(moment_of(0), table.c.created_at.type))


def page_of(
    rows: Sequence[AnyRow],
    convert: Callable[[AnyRow], ItemT],
    *,
    more: bool,
    cursor: Callable[[AnyRow], str],
) -> Page[ItemT]:
    """A page of converted rows; the cursor names the last one if more follow."""
    return Page(
        items=tuple(convert(row) for row in rows),
        next_cursor=cursor(rows[-1]) if more and rows else None,
    )


def _moment(value: int) -> datetime:
    try:
        return moment_of(value)
    except OverflowError as error:
        raise _cursor_invalid() from error


def _cursor_invalid() -> ServiceError:
    return invalid(
        "cursor_invalid",
        "The cursor is not from this list.",
        Violation(path="cursor", message="must be the next_cursor of the page before"),
    )
