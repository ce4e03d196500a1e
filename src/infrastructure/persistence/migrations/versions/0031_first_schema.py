"""The first schema: revisions 0001 to 0031 in one. See ADR 0039."""

from infrastructure.persistence.migrations.first_schema import (
    agents,
    approvals,
    audit,
    gateway,
    identity,
    mcp,
    rights,
    row_changes,
    runs,
    schedules,
    sources,
    threads,
    workflows,
)

revision = "0031"
down_revision = None
branch_labels = None
depends_on = None

# A table comes after those that it references.
_SLICES = (identity, agents, mcp, threads, sources, runs, schedules, audit, workflows, gateway, approvals)


def upgrade() -> None:
    """Create the schema of revision 0031. There is no downgrade."""
    rights.create_roles()
    for tables in _SLICES:
        tables.create()
    rights.grant()
    row_changes.create()
