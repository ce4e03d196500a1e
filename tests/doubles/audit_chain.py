"""The audit chain in memory, and keys of seals that are simply given."""

import json
from datetime import UTC, datetime, timedelta

from application.audit.ports import (
    AuditFilter,
    ChainEnd,
    ExportPart,
    Place,
    PruneEntry,
    Scanned,
    Sealed,
    Unsent,
    Waiting,
)
from domain.audit.chain import ChainHead, ChainKey, ChainKeys, Entry, chain_key, continuable, extended, first_head
from domain.audit.chain import pruned as pruned_head
from domain.audit.chain_check import ChainCheck, StoredLink
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict
from domain.ids import AuditEventId, OrganizationId
from tests.doubles.audit import matches
from tests.doubles.owners import is_seen_entry
from tests.doubles.state import InMemoryState

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GivenSealKeys:
    """`SealKeys` with these secrets, the newest first."""

    def __init__(self, *secrets: bytes) -> None:
        self.secrets = secrets

    def current(self) -> ChainKey:
        """The first."""
        return chain_key(self.secrets[0])

    async def all(self) -> ChainKeys:
        """Every one."""
        keys = [chain_key(secret) for secret in self.secrets]
        return ChainKeys(current=keys[0], known={key.id: key for key in keys})


class InMemoryAuditChain:
    """The `AuditSeals` and `AuditChain` ports over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def waiting(self, since: Place, current_key: str) -> tuple[Waiting, ...]:
        """Organizations with something to seal or to sign."""
        heads = self._state.audit_heads
        return tuple(
            Waiting(organization_id=one, since=Place(at=_micros(unsealed[0].at)) if unsealed else since)
            for one in sorted(self._state.organizations)
            if (unsealed := self._unsealed(one, since.at)) or (one in heads and heads[one].key_id != current_key)
        )

    async def organizations(self) -> tuple[OrganizationId, ...]:
        """All there are."""
        return tuple(sorted(self._state.organizations))

    async def scan(self, organization_id: OrganizationId, after: Place, limit: int) -> Scanned:
        """Look through a stretch of the trail."""
        sealed = self._sealed_ids(organization_id)
        behind = [
            Place(at=at, event_id=event_id)
            for at, event_id in sorted((_micros(entry.at), entry.id) for entry in self._entries(organization_id))
            if (at, event_id) > (after.at, after.event_id)
        ][:limit]
        return Scanned(
            unsealed=tuple(place for place in behind if place.event_id not in sealed),
            next=behind[-1] if len(behind) == limit else None,
        )

    async def seal(
        self, organization_id: OrganizationId, since: Place, *, keys: ChainKeys, at: datetime, limit: int
    ) -> Sealed:
        """Seal visible entries."""
        head = self._own_head(organization_id, keys)
        events = self._unsealed(organization_id, since.at)[:limit]
        entries = [entry_of(event) for event in events]
        links, after = extended(head, entries, key=keys.current, sealed_at=_micros(at))
        self._state.audit_links.setdefault(organization_id, []).extend(links)
        self._state.audit_heads[organization_id] = after
        self._state.sealed_entries += events
        last = Place(at=_micros(events[-1].at), event_id=events[-1].id) if events else None
        return Sealed(count=len(links), last=last)

    async def prune(
        self,
        organization_id: OrganizationId,
        before: datetime,
        *,
        keys: ChainKeys,
        audit: PruneEntry,
        limit: int,
        through: int | None = None,
    ) -> int:
        """Remove the old part of the chain."""
        if organization_id not in self._state.audit_heads:
            return 0
        head = self._own_head(organization_id, keys)
        old: list[StoredLink] = []
        for stored in await self.links(organization_id, head.pruned_through, limit):
            event = self._state.audit.get(AuditEventId(stored.link.event_id))
            if event is not None and event.at >= before:
                break
            if through is not None and stored.link.number > through:
                break
            old.append(stored)
        if not old:
            return 0
        check = ChainCheck(keys.known, head.pruned_through, head.pruned_seal)
        if check.take(old) is not None or check.unknown:
            raise _broken(organization_id)
        last = old[-1].link
        for stored in old:
            del self._state.audit[AuditEventId(stored.link.event_id)]
        kept = [link for link in self._state.audit_links[organization_id] if link.number > last.number]
        self._state.audit_links[organization_id] = kept
        self._state.audit_heads[organization_id] = pruned_head(head, last, key=keys.current)
        self._state.record(audit(last.number, len(old)))
        return len(old)

    async def end(self, organization_id: OrganizationId) -> ChainEnd:
        """Where the chain ends."""
        links = self._state.audit_links.get(organization_id, [])
        return ChainEnd(
            head=self._state.audit_heads.get(organization_id),
            last_number=max((link.number for link in links), default=0),
        )

    async def links(self, organization_id: OrganizationId, after: int, limit: int) -> tuple[StoredLink, ...]:
        """Links in order."""
        return self._stored(organization_id, after)[:limit]

    async def export(self, organization_id: OrganizationId, wanted: AuditFilter, after: int, limit: int) -> ExportPart:
        """Links whose entries match, and at the end what is unsealed."""
        found = [
            stored
            for stored in self._stored(organization_id, after)
            if (event := self._state.audit.get(AuditEventId(stored.link.event_id))) is not None
            and matches(event, wanted)
            and is_seen_entry(self._state, wanted.teams, event)
        ][:limit]
        if len(found) == limit:
            return ExportPart(links=tuple(found), unsealed=(), is_last=False)
        waiting = [
            entry_of(event)
            for event in self._unsealed(organization_id)
            if matches(event, wanted) and is_seen_entry(self._state, wanted.teams, event)
        ]
        return ExportPart(links=tuple(found), unsealed=tuple(waiting), is_last=True)

    def _own_head(self, organization_id: OrganizationId, keys: ChainKeys) -> ChainHead:
        links = self._state.audit_links.get(organization_id, [])
        head = self._state.audit_heads.get(organization_id)
        if head is None and not links:
            return first_head(keys.current, organization_id)
        if head is None or not continuable(head, keys, lambda: links[-1].key_id if links else None):
            raise _broken(organization_id)
        return head

    def _stored(self, organization_id: OrganizationId, after: int) -> tuple[StoredLink, ...]:
        links = sorted(self._state.audit_links.get(organization_id, []), key=lambda link: link.number)
        events = ((link, self._state.audit.get(AuditEventId(link.event_id))) for link in links if link.number > after)
        return tuple(StoredLink(link=link, entry=None if event is None else entry_of(event)) for link, event in events)

    def _entries(self, organization_id: OrganizationId) -> list[AuditEvent]:
        return [entry for entry in self._state.audit.values() if entry.organization_id == organization_id]

    def _sealed_ids(self, organization_id: OrganizationId) -> set[str]:
        return {link.event_id for link in self._state.audit_links.get(organization_id, [])}

    def _unsealed(self, organization_id: OrganizationId, since: int | None = None) -> list[AuditEvent]:
        sealed = self._sealed_ids(organization_id)
        waiting = [
            entry
            for entry in self._entries(organization_id)
            if entry.id not in sealed and (since is None or _micros(entry.at) >= since)
        ]
        return sorted(waiting, key=lambda entry: (entry.at, entry.id))


class InMemoryAuditForwards:
    """The `AuditForwards` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def unsent(self, limit: int) -> tuple[Unsent, ...]:
        """The longest waiting first."""
        found = [each for one in self._state.audit_heads.values() if (each := self._unsent(one)) is not None]
        return tuple(sorted(found, key=lambda each: (each.since, each.organization_id))[:limit])

    async def sent(self, organization_id: OrganizationId, number: int, at: datetime) -> None:
        """Never backwards."""
        before = self._state.audit_sent.get(organization_id, 0)
        self._state.audit_sent[organization_id] = max(before, number)

    def _unsent(self, head: ChainHead) -> Unsent | None:
        sent = self._state.audit_sent.get(head.organization_id)
        after = max(sent or 0, head.pruned_through)
        waiting = [link for link in self._state.audit_links.get(head.organization_id, []) if link.number > after]
        if not waiting:
            return None
        since = _EPOCH + timedelta(microseconds=waiting[0].sealed_at)
        lost = 0 if sent is None else after - sent
        return Unsent(organization_id=head.organization_id, after=after, since=since, lost=lost)


def entry_of(event: AuditEvent) -> Entry:
    """What a seal covers."""
    return (
        event.id,
        event.organization_id,
        event.action.value,
        event.actor,
        event.resource,
        _micros(event.at),
        event.run_id,
        event.tool,
        event.server_id,
        event.duration_ms,
        event.arguments_digest,
        json.dumps(event.details, separators=(",", ":")),
    )


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _broken(organization_id: OrganizationId) -> ServiceError:
    return conflict(
        "audit_chain_broken", f"The audit chain of {organization_id} has been changed and is not continued."
    )
