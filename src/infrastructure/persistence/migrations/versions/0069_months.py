"""Audit entries and gateway calls in monthly partitions on PostgreSQL; rows from before stay in one
partition."""

from infrastructure.persistence.migrations.months import Monthly, create_functions, divide, drop_functions, lock, unite

revision = "0069"
down_revision = "0074"
branch_labels = None
depends_on = None

_AUDIT_EVENT = Monthly(
    table="audit_event",
    prefix="aud",
    key="id",
    indexes={
        "ix_audit_event_organization_id_at_id": "(organization_id, at, id)",
        "ix_audit_event_run_id": "(run_id) WHERE run_id IS NOT NULL",
    },
    requests_may="SELECT, INSERT",
)
_GATEWAY_CALL = Monthly(
    table="gateway_call",
    prefix="call",
    key="session_id, id",
    indexes={"ix_gateway_call_open": "(session_id, name) WHERE state <> 'settled'"},
    reference=(
        "fk_gateway_call_session_id_gateway_session",
        "(session_id) REFERENCES gateway_session (id) ON DELETE CASCADE",
    ),
)


def upgrade() -> None:
    """The code of the revision before reads and writes the same tables."""
    lock("gateway_session", _GATEWAY_CALL, _AUDIT_EVENT)
    create_functions(_AUDIT_EVENT.table, _GATEWAY_CALL.table)
    divide(_AUDIT_EVENT)
    divide(_GATEWAY_CALL)


def downgrade() -> None:
    unite(_AUDIT_EVENT)
    unite(_GATEWAY_CALL)
    drop_functions()
