"""The teams that own what rows name."""

from typing import Any

from sqlalchemy import ColumnElement, func, select

from infrastructure.persistence.tables.agents import agent
from infrastructure.persistence.tables.runs import run
from infrastructure.persistence.tables.threads import thread
from infrastructure.persistence.tables.webhooks import webhook_delivery
from infrastructure.persistence.tables.workflows import workflow_run


def team_of_agent(agent_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(agent.c.team).where(agent.c.id == agent_id).scalar_subquery()


def team_of_run(run_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(run.c.team).where(run.c.id == run_id).scalar_subquery()


def team_of_thread(thread_id: ColumnElement[Any]) -> ColumnElement[Any]:
    return select(thread.c.team).where(thread.c.id == thread_id).scalar_subquery()


def team_of_delivery() -> ColumnElement[Any]:
    """Of a webhook delivery: that of its run or workflow run."""
    of_workflow_run = select(workflow_run.c.team).where(workflow_run.c.id == webhook_delivery.c.workflow_run_id)
    return func.coalesce(team_of_run(webhook_delivery.c.run_id), of_workflow_run.scalar_subquery())
