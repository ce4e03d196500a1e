"""Organizations in which a group has owned something, also after that has gone."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0104"
branch_labels = None
depends_on = None


_OWNERS = ("agent", "mcp_server", "thread", "workflow", "workflow_run")


def upgrade() -> None:
    op.add_column("organization", sa.Column("had_teams", sa.Boolean(), nullable=False, server_default=sa.false()))
    organization = sa.table("organization", sa.column("id", sa.Text()), sa.column("had_teams", sa.Boolean()))
    for name in _OWNERS:
        owner = sa.table(name, sa.column("organization_id", sa.Text()), sa.column("team", sa.Text()))
        owners = sa.select(owner.c.organization_id).where(owner.c.team.is_not(None))
        op.execute(organization.update().where(organization.c.id.in_(owners)).values(had_teams=True))


def downgrade() -> None:
    op.drop_column("organization", "had_teams")
