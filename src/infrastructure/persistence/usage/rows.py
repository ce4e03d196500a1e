"""Adds the usage of a model call to the sums of its day, and to those of who started the run."""

from collections.abc import Iterable

from sqlalchemy import Connection, Table, bindparam, update

from domain.runs.run import Run
from domain.runs.usage import ModelSpending
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.tables import budget_reservation, person_usage, usage

SUMMED = (
    "model_calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_nano_usd",
    "unpriced_calls",
    "estimated_calls",
)


def adding_to(table: Table, summed: Iterable[str]) -> Prepared:
    """Inserts a row, or adds its values in these columns to the row of its key."""
    insert = upsert(table).inline()
    return Prepared(
        insert.on_conflict_do_update(
            index_elements=[column.name for column in table.primary_key],
            set_={name: table.c[name] + insert.excluded[name] for name in summed},
        ),
        columns=[column.name for column in table.columns],
    )


_add = adding_to(usage, SUMMED)
_add_by_person = adding_to(person_usage, SUMMED)
_settle = Prepared(
    update(budget_reservation)
    .where(budget_reservation.c.run_id == bindparam("of_run"))
    .values(amount_nano_usd=bindparam("left"))
)


def add_spending(connection: Connection, run: Run, spent: Iterable[ModelSpending]) -> None:
    """Add it in the transaction of the step that stores the reply."""
    # All transactions lock the shared sums in one order.
    for spending in sorted(spent, key=lambda spending: (spending.at.date(), spending.model)):
        used = spending.usage
        row: dict[str, object] = {
            "organization_id": run.organization_id,
            "day": spending.at.date().toordinal(),
            "agent_id": run.agent_id,
            "model": spending.model,
            "model_calls": 1,
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cached_tokens": used.cached_tokens,
            "reasoning_tokens": used.reasoning_tokens,
            "cost_nano_usd": used.cost_usd or 0,
            "unpriced_calls": int(used.cost_usd is None),
            "estimated_calls": int(used.estimated),
        }
        _add.run(connection, row)
        if run.requested_by is not None:
            _add_by_person.run(connection, {**row, "started_by": run.requested_by})
        if spending.still_reserved_usd is not None:
            _settle.run(connection, {"of_run": run.id, "left": spending.still_reserved_usd})
