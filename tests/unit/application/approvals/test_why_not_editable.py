"""WhyNotEditable: which calls have arguments that the caller may not change, because they use
another's account."""

from dataclasses import replace

import pytest

from application.approvals.queries import WhyNotEditable
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.server import Credentials
from tests.builders import a_tool_call
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.mcp_builders import a_person_server, a_state_with_servers
from tests.people_builders import a_person
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")


async def test_only_the_person_whose_account_is_used_may_change_the_arguments() -> None:
    person, personal = a_person(Role.OPERATOR), a_person_server(Credentials.PERSON)
    query = WhyNotEditable(servers=InMemoryMcpServerStore(a_state_with_servers(personal)))
    native, at_own, at_gone = (
        replace(a_run_approval(a_tool_call(index), requested_by=person.key_id), server_id=server_id)
        for index, server_id in enumerate((None, personal.id, McpServerId("mcp_gone")))
    )
    approvals = (native, at_own, at_gone)
    assert await query.execute(person, approvals) == {}
    found = await query.execute(a_principal(Role.ADMIN), approvals)
    assert {approval_id: refusal.code for approval_id, refusal in found.items()} == {at_own.id: "account_not_yours"}


async def test_arguments_of_a_call_with_the_organizations_account_may_be_changed() -> None:
    shared = a_person_server(Credentials.ORGANIZATION)
    query = WhyNotEditable(servers=InMemoryMcpServerStore(a_state_with_servers(shared)))
    approval = replace(a_run_approval(requested_by=a_person(Role.OPERATOR).key_id), server_id=shared.id)
    assert await query.execute(a_principal(Role.ADMIN), (approval,)) == {}
