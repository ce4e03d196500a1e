"""Usage by who started runs, with what the stored runs have used. Their unpriced calls and single
days are not known: a run counts on the day on which it was created."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.migrations.row_security import protect

revision = "0109"
down_revision = "0083"
branch_labels = None
depends_on = None

_KEYS = ("organization_id", "day", "started_by", "agent_id", "model")
_SUMS = (
    "model_calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_nano_usd",
    "unpriced_calls",
    "estimated_calls",
)
# 719163 is the ordinal of 1970-01-01; times are microseconds since then.
_FILL = """
INSERT INTO person_usage (organization_id, day, started_by, agent_id, model, model_calls, input_tokens, output_tokens,
    cached_tokens, reasoning_tokens, cost_nano_usd, unpriced_calls, estimated_calls)
SELECT run.organization_id, run.created_at / 86400000000 + 719163, run.requested_by, run.agent_id, run_request.model,
    sum(run.turns), sum(run.input_tokens), sum(run.output_tokens), sum(run.cached_tokens), sum(run.reasoning_tokens),
    sum(run.cost_nano_usd), 0, sum(CASE WHEN run.usage_estimated THEN 1 ELSE 0 END)
FROM run JOIN run_request ON run_request.run_id = run.id
WHERE run.requested_by IS NOT NULL AND run.turns > 0
GROUP BY 1, 2, 3, 4, 5
"""


def upgrade() -> None:
    op.create_table(
        "person_usage",
        sa.Column("organization_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _KEYS[2:]),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _SUMS),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organization.id"],
            name="fk_person_usage_organization_id_organization",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(*_KEYS, name="pk_person_usage"),
        sqlite_with_rowid=False,
    )
    protect("person_usage")
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_FILL)
        return
    op.execute(f"SET LOCAL ROLE {SYSTEM_ROLE}")
    op.execute(_FILL)
    op.execute("RESET ROLE")


def downgrade() -> None:
    op.drop_table("person_usage")
