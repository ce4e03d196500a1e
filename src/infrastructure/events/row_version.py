"""Version numbers of tables, for values derived from their rows (ADR 0015)."""

from domain.ids import OrganizationId
from infrastructure.events.row_notifications import RowNotifications


class RowVersion:
    """Calling it returns a number that changes with every change of `tables` by any process; None
    while notifications are not up to date."""

    def __init__(self, *tables: str, notifications: RowNotifications) -> None:
        self._notifications = notifications
        self._changes = 0
        notifications.watch(self._changed, *tables)

    def __call__(self) -> int | None:
        return self._changes if self._notifications.fresh() else None

    def _changed(self, organization_id: OrganizationId | None) -> None:
        self._changes += 1
