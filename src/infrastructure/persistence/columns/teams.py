"""The condition that someone sees a row that a team owns."""

from typing import Any

from sqlalchemy import ColumnElement, or_

from domain.teams import Teams


def seen_by(teams: Teams, owner: ColumnElement[Any]) -> tuple[ColumnElement[bool], ...]:
    """The condition that a row is seen with what these teams own; none for all teams."""
    return () if teams is None else (or_(owner.is_(None), owner.in_(sorted(teams))),)
