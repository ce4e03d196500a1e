"""The audit trail over HTTP: conditions, export and verification."""

import json
from dataclasses import replace

import pytest

from application.audit.ports import Place
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import AuditEventId
from domain.json_value import JsonObject
from tests.builders import ORG, OTHER_ORG, RUN, SERVER, after, an_audit_event
from tests.composition import SEAL_KEY
from tests.doubles.audit_chain import GivenSealKeys
from tests.integration.http.service import Service, token_of

LATER = after(10**7)
"""What happens then has not waited too long by the clock of any test."""
ENTRIES = (
    an_audit_event(1, action=AuditAction.AGENT_CREATED, resource="agt_1"),
    an_audit_event(2, action=AuditAction.TOOL_EXECUTED, run_id=RUN, tool="mcp__files__read", server_id=SERVER),
    an_audit_event(3, action=AuditAction.TOOL_FAILED, run_id=RUN, actor="system", details={"error": "ü"}),
)


@pytest.fixture
async def trail(service: Service) -> Service:
    """Three sealed entries, one that waits, and one of another organization."""
    for entry in ENTRIES:
        await service.stores.audit.record(entry)
    await seal(service)
    await service.stores.audit.record(an_audit_event(4, action=AuditAction.RUN_COMPLETED, run_id=RUN, at=LATER))
    await service.stores.audit.record(an_audit_event(9, organization_id=OTHER_ORG))
    return service


async def seal(service: Service) -> None:
    keys = await GivenSealKeys(SEAL_KEY).all()
    await service.stores.audit_seals.seal(ORG, Place(at=0), keys=keys, at=after(5), limit=10)


async def exported(service: Service, query: str = "", *, role: Role = Role.VIEWER) -> list[JsonObject]:
    response = await service.call("GET", f"/v1/audit-events/export{query}", token=token_of(role))
    assert (response.status_code, response.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [4, 3, 2, 1]),
        ("?action=tool.*", [3, 2]),
        ("?action=run.completed", [4]),
        ("?actor=system", [3]),
        (f"?run_id={RUN}", [4, 3, 2]),
        ("?resource=agt_1", [1]),
        ("?tool=mcp__files__read", [2]),
        (f"?server_id={SERVER}", [2]),
        ("?since=2026-01-01T12:00:02Z&until=2026-01-01T12:00:04%2B00:00", [3, 2]),
        ("?since=2026-01-01T13:00:03%2B01:00", [4, 3]),
    ],
)
async def test_the_list_and_the_export_keep_to_the_same_conditions(
    trail: Service, query: str, numbers: list[int]
) -> None:
    listed = (await trail.call("GET", f"/v1/audit-events{query}", token=token_of(Role.VIEWER))).json()
    assert [entry["id"] for entry in listed["data"]] == [an_audit_event(number).id for number in numbers]
    assert [entry["id"] for entry in await exported(trail, query)] == [
        an_audit_event(number).id for number in reversed(numbers)
    ]


@pytest.mark.requirement("C5")
async def test_an_exported_line_has_what_the_list_has_and_the_seal(trail: Service) -> None:
    lines = await exported(trail)
    listed = (await trail.call("GET", "/v1/audit-events")).json()["data"]
    seals = ("number", "seal", "key_id", "sealed_at")
    assert [{name: value for name, value in line.items() if name not in seals} for line in lines] == listed[::-1]
    assert [line["number"] for line in lines] == [1, 2, 3, None]
    assert len({line["seal"] for line in lines}) == 4
    assert {line["key_id"] for line in lines[:3]} == {GivenSealKeys(SEAL_KEY).current().id}
    assert lines[0]["sealed_at"] == "2026-01-01T12:00:05.000000Z"
    assert lines[3]["seal"] is None


@pytest.mark.requirement("C5")
async def test_verifying_says_how_far_the_chain_was_checked(trail: Service) -> None:
    response = await trail.call("GET", "/v1/audit-events/verify", token=token_of(Role.VIEWER))
    assert response.status_code == 200
    report = response.json()
    assert (report["ok"], report["checked"], report["sealed_through"], report["unsealed"]) == (True, 3, 3, 1)
    assert (report["first_broken"], report["unknown_keys"]) == (None, [])


@pytest.mark.requirement("C5")
async def test_verifying_names_the_event_that_was_edited(trail: Service) -> None:
    edited = AuditEventId(ENTRIES[1].id)
    trail.state.audit[edited] = replace(trail.state.audit[edited], actor="key_somebody_else")
    report = (await trail.call("GET", "/v1/audit-events/verify")).json()
    assert report["ok"] is False
    assert report["first_broken"] == {"number": 2, "event_id": edited, "problem": "edited"}


@pytest.mark.requirement("C5", "C6")
async def test_another_organization_sees_and_verifies_its_own_trail(trail: Service) -> None:
    from_other = "dgm_admin-of-the-other-organization"
    report = (await trail.call("GET", "/v1/audit-events/verify", token=from_other)).json()
    assert (report["checked"], report["unsealed"]) == (0, 1)
    lines = (await trail.call("GET", "/v1/audit-events/export", token=from_other)).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [an_audit_event(9).id]


async def test_an_empty_export_is_empty(service: Service) -> None:
    assert await exported(service) == []
