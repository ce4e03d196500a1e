"""Impersonations in memory."""

from dataclasses import replace
from datetime import datetime

from application.identity.key_validity import access_topic
from application.system.wakeups import Wakeups
from domain.audit.event import AuditEvent
from domain.identity.impersonation import SHOWN_FOR, Impersonation
from domain.ids import ImpersonationId, OrganizationId, UserId
from infrastructure.events.wakeups import InProcessWakeups
from tests.doubles.state import InMemoryState


class InMemoryImpersonationStore:
    """The `ImpersonationStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups | None = None) -> None:
        self._state = state
        self._wakeups = wakeups or InProcessWakeups()

    async def add(self, begun: Impersonation, audit: AuditEvent) -> None:
        """Store an impersonation, and drop old ones."""
        for each in list(self._state.impersonations.values()):
            if each.organization_id == begun.organization_id and each.created_at < begun.created_at - SHOWN_FOR:
                del self._state.impersonations[each.id]
        self._state.impersonations[begun.id] = begun
        self._state.record(audit)

    async def by_hash(self, token_hash: str) -> Impersonation | None:
        """Of its token."""
        found = (each for each in self._state.impersonations.values() if each.token_hash == token_hash)
        return next(found, None)

    async def get(self, organization_id: OrganizationId, impersonation_id: ImpersonationId) -> Impersonation | None:
        """By id."""
        found = self._state.impersonations.get(impersonation_id)
        return found if found is not None and found.organization_id == organization_id else None

    async def of_user(
        self, organization_id: OrganizationId, user_id: UserId, *, since: datetime
    ) -> tuple[Impersonation, ...]:
        """The newest first."""
        found = [
            each
            for each in self._state.impersonations.values()
            if (each.organization_id, each.user_id) == (organization_id, user_id) and each.created_at >= since
        ]
        return tuple(sorted(found, key=lambda each: (each.created_at, each.id), reverse=True))

    async def end(self, organization_id: OrganizationId, impersonation_id: ImpersonationId, audit: AuditEvent) -> bool:
        """End an open one."""
        found = await self.get(organization_id, impersonation_id)
        if found is None or not found.is_open(audit.at):
            return False
        self._state.impersonations[impersonation_id] = replace(found, ended_at=audit.at)
        self._state.record(audit)
        self._wakeups.wake(access_topic(organization_id))
        return True
