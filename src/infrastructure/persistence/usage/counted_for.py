"""Condition on what counts for a user: what they started themselves or as others, and with keys
that they made."""

from sqlalchemy import ColumnElement, bindparam, or_, select

from domain.identity.impersonation import as_others
from domain.ids import ApiKeyId, UserId
from infrastructure.persistence.columns.starters import is_started_by
from infrastructure.persistence.tables import api_key

_NO_USER = ""


def counted_for(column: ColumnElement[str]) -> ColumnElement[bool]:
    """To be executed with the parameters of `counting_for`, and with `organization_id`."""
    of_keys = select(api_key.c.id).where(
        api_key.c.organization_id == bindparam("organization_id", type_=api_key.c.organization_id.type),
        api_key.c.person_id == bindparam("maker_of_keys", type_=api_key.c.person_id.type),
    )
    started_by = bindparam("started_by", type_=column.type)
    return or_(is_started_by(column, started_by, bindparam("as_others", type_=column.type)), column.in_(of_keys))


def counting_for(user_id: UserId, *, with_keys: bool) -> dict[str, str]:
    starter = ApiKeyId(user_id)
    return {
        "started_by": starter,
        "as_others": as_others(starter),
        "maker_of_keys": user_id if with_keys else _NO_USER,
    }
