"""Organizations in which a group has owned something, also after that has gone."""

import sqlalchemy as sa
from alembic import op

from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE

revision = "0111"
down_revision = "0104"
branch_labels = None
depends_on = None


_OWNERS = ("agent", "mcp_server", "thread", "workflow", "workflow_run")


def upgrade() -> None:
    op.add_column("organization", sa.Column("had_teams", sa.Boolean(), nullable=False, server_default=sa.false()))
    has_roles = op.get_bind().dialect.name != "sqlite"
    if has_roles:
        op.execute(f"SET LOCAL ROLE {SYSTEM_ROLE}")
    organization = sa.table("organization", sa.column("id", sa.Text()), sa.column("had_teams", sa.Boolean()))
    for name in _OWNERS:
        owner = sa.table(name, sa.column("organization_id", sa.Text()), sa.column("team", sa.Text()))
        owners = sa.select(owner.c.organization_id).where(owner.c.team.is_not(None))
        op.execute(organization.update().where(organization.c.id.in_(owners)).values(had_teams=True))
    if has_roles:
        op.execute("RESET ROLE")


def downgrade() -> None:
    op.drop_column("organization", "had_teams")
