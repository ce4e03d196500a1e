"""Events and tool calls of runs in monthly partitions on PostgreSQL, by the ids of their runs; rows
from before stay in one partition."""

from infrastructure.persistence.migrations.months import Monthly, create_functions, divide, lock, unite

revision = "0078"
down_revision = "0076"
branch_labels = None
depends_on = None

_EARLIER = ("audit_event", "gateway_call")
_RUN_EVENT = Monthly(
    table="run_event",
    prefix="run",
    by="run_id",
    key="run_id, seq",
    reference=("fk_run_event_run_id_run", "(run_id) REFERENCES run (id) ON DELETE CASCADE"),
)
_TOOL_CALL = Monthly(
    table="tool_call",
    prefix="run",
    by="run_id",
    key="run_id, id",
    reference=("fk_tool_call_run_id_run", "(run_id) REFERENCES run (id) ON DELETE CASCADE"),
)


def upgrade() -> None:
    """The code of the revision before reads and writes the same tables."""
    lock("run", _RUN_EVENT, _TOOL_CALL)
    create_functions(*_EARLIER, _RUN_EVENT.table, _TOOL_CALL.table)
    divide(_RUN_EVENT)
    divide(_TOOL_CALL)


def downgrade() -> None:
    create_functions(*_EARLIER)
    unite(_RUN_EVENT)
    unite(_TOOL_CALL)
