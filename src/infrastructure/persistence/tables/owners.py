"""The teams that own what rows name."""

from typing import Any

from sqlalchemy import ColumnElement, select

from infrastructure.persistence.tables.agents import agent
from infrastructure.persistence.tables.runs import run
from infrastructure.persistence.tables.threads import thread


def team_of_agent(agent_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(agent.c.team).where(agent.c.id == agent_id).scalar_subquery()


def team_of_run(run_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(run.c.team).where(run.c.id == run_id).scalar_subquery()


def team_of_thread(thread_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(thread.c.team).where(thread.c.id == thread_id).scalar_subquery()
