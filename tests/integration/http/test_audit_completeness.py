"""Every route that changes something: which entry of the audit trail it leaves, or why it leaves
none."""

import pytest

from tests.integration.http.route_cases import Case
from tests.integration.http.service import PLATFORM, Service, token_of
from tests.integration.http.test_access import CASES, _filled, names

__all__ = ["names"]

UNAUDITED = {
    "POST /v1/sign-in-links": "changes no record; whoever signs in by it acts as the key that asked for it, and is audited as that key",
    "POST /v1/identity-providers/{identity_provider}/test": "reads metadata and keys of the provider, and changes no record",
    "POST /v1/sessions/end-all": "the caller of this case has no session: none ends",
    "POST /v1/threads": "an empty thread does nothing; its runs are audited",
    "POST /v1/threads/{thread_id}/fork": "messages that the caller reads already, for later runs, which are audited",
    "POST /v1/threads/{thread_id}/messages": "text for a later run, which is audited",
    "POST /v1/mcp-servers/{server}/refresh": "reads; a tool that changed is audited when it is put in quarantine",
    "POST /v1/mcp-servers/{server}/connect": "changes no record; what is called is audited",
    "POST /v1/mcp-servers/{server}/disconnect": "changes no record; what is called is audited",
    "POST /v1/mcp-servers/{server}/tools/{tool}/approve": "the tool of this case is in use already: nothing is approved",
    "POST /v1/mcp-servers/import": "an empty file; each server of one is registered like any other",
    "PATCH /v1/agents/{agent}": "the agent of this case is enabled already: nothing changes",
    "POST /v1/mcp-servers/{server}/uninstall": "the server of this case is not an installed one: nothing changes",
    "POST /v1/workflow-runs/{workflow_run}/cancel": "the run of this case has ended already: nothing changes",
    "POST /v1/workflows/validate": "says what saving would say, and saves nothing",
    "POST /v1/secrets/rotate": "the first of several steps; the last one is audited",
}
CHANGES = [case for case in CASES if case.method != "GET" and case.status < 400]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("case", CHANGES, ids=str)
async def test_every_route_that_changes_something_leaves_an_entry_or_has_a_reason_not_to(
    service: Service, names: dict[str, str], case: Case
) -> None:
    before = set(service.state.audit)
    token = PLATFORM if case.platform else token_of(case.role)
    response = await service.call(
        case.method, str(_filled(case.path, names)), json=_filled(case.body, names), token=token
    )
    assert response.status_code == case.status, response.text
    left = [entry for entry_id, entry in service.state.audit.items() if entry_id not in before]
    assert bool(left) is (str(case) not in UNAUDITED), [entry.action for entry in left]
    assert all(entry.actor and entry.resource and entry.organization_id for entry in left)


def test_the_reasons_are_of_routes_that_there_are() -> None:
    assert set(UNAUDITED) <= {str(case) for case in CHANGES}
