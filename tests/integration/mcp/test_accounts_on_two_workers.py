"""Accounts of many people in two processes on one PostgreSQL database: whose token each call has, while all tokens end again
and again."""

import asyncio
import os
from dataclasses import replace

import pytest

from application.mcp.authorization import AuthorizationAnswer
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.audit.event import AuditAction
from domain.ids import ApiKeyId, AuditEventId, UserId
from domain.mcp.server import Credentials, McpServer
from tests.builders import ORG, an_audit_event
from tests.integration.mcp.oauth_world import AuthorizationServer
from tests.integration.mcp.parts import a_call, text_of
from tests.integration.mcp.test_processes_on_one_database import Process, Two, database, protected_server, two
from tests.people_builders import a_user

__all__ = ["database", "two"]

pytestmark = pytest.mark.requirement("P3")


async def consent(process: Process, authorization: AuthorizationServer, server: McpServer, person: UserId) -> None:
    authorizer = process.oauth.authorizer
    request = await authorizer.begin(server.acting_for(person), ApiKeyId(person), browser="b")
    back = authorization.authorize(request.url, account=person)
    await authorizer.complete(
        AuthorizationAnswer(state=back["state"], code=back["code"], issuer=back["iss"], browser="b")
    )


async def account_of(
    process: Process, server: McpServer, scope: ConnectionScope, authorization: AuthorizationServer
) -> str | None:
    """Whose token the server got. A call is made again when its server closed an idle connection in that moment."""
    while True:
        try:
            reply = await process.connections.call_tool(server, scope, a_call("whoami"))
        except McpFailure as failure:
            if failure.kind not in (McpFailureKind.CONNECTION_LOST, McpFailureKind.NOT_CONNECTED):
                raise
        else:
            return authorization.accounts.get(text_of(reply))


async def drill(two: Two, *, people: int, calls: int) -> dict[str, int]:
    """Calls by turns of people and processes, four of each person at a time."""
    found = {"own": 0, "of another": 0}
    async with protected_server() as (authorization, registered):
        config = replace(registered.config, credentials=Credentials.PERSON, max_concurrency=64)
        server = await two.add(replace(registered, config=config))
        names = [UserId(f"usr_{number:03}") for number in range(people)]
        for person in names:
            added = an_audit_event(action=AuditAction.USER_CREATED)
            await two.mine.stores.user_access.add(
                a_user(person, subject=person), replace(added, id=AuditEventId(f"aud_{person}"))
            )
            await consent(two.mine, authorization, server, person)

        async def call(number: int) -> None:
            person, process = names[number % people], (two.mine, two.other)[number // people % 2]
            scope = ConnectionScope(organization_id=ORG, person_id=person)
            whose = await account_of(process, server, scope, authorization)
            found["own" if whose == person else "of another"] += 1

        at_a_time = 4 * people
        for first in range(0, calls, at_a_time):
            await asyncio.gather(*(call(number) for number in range(first, min(calls, first + at_a_time))))
            two.clock.advance(3600 - 30)  # all tokens are due, in both processes
        used = authorization.asked["refresh_token"]
        return {**found, "renewed": used, "reused": authorization.reused}


async def test_each_call_has_its_persons_token_and_each_refresh_token_is_used_once(two: Two) -> None:
    found = await drill(two, people=10, calls=200)
    assert found == {"own": 200, "of another": 0, "renewed": 40, "reused": 0}


@pytest.mark.timeout(1800)
@pytest.mark.skipif("DRAGOMAN_TEST_ACCOUNTS" not in os.environ, reason="opt in with DRAGOMAN_TEST_ACCOUNTS=1")
async def test_ten_thousand_calls_of_a_hundred_people_mix_up_no_accounts(two: Two) -> None:
    found = await drill(two, people=100, calls=10_000)
    assert found == {"own": 10_000, "of another": 0, "renewed": 2_400, "reused": 0}
