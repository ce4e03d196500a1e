"""Accounts of many people in two processes on one PostgreSQL database: whose token or secret each
call has, while all tokens end and secrets are replaced again and again."""

import asyncio
import os
from dataclasses import replace

import pytest

from application.mcp.authorization import AuthorizationAnswer
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.audit.event import AuditAction
from domain.ids import ApiKeyId, AuditEventId, UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, binding_of_secrets
from domain.mcp.server import Credentials, McpServer
from domain.secrets.secret import SecretRef
from tests.builders import ORG, START, an_audit_event
from tests.integration.mcp.oauth_world import AuthorizationServer
from tests.integration.mcp.parts import PATIENCE_S, a_call, remote, serving, text_of
from tests.integration.mcp.test_processes_on_one_database import Process, Two, database, protected_server, two
from tests.integration.mcp.test_secrets_of_persons import Protected
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


async def add_person(two: Two, person: UserId) -> None:
    added = an_audit_event(action=AuditAction.USER_CREATED)
    await two.mine.stores.user_access.add(
        a_user(person, subject=person), replace(added, id=AuditEventId(f"aud_{person}"))
    )


async def told_by(process: Process, server: McpServer, scope: ConnectionScope) -> str:
    """What the server says. A call is made again when its server closed an idle connection in that
    moment."""
    while True:
        try:
            return text_of(await process.connections.call_tool(server, scope, a_call("whoami")))
        except McpFailure as failure:
            if failure.kind not in (McpFailureKind.CONNECTION_LOST, McpFailureKind.NOT_CONNECTED):
                raise


async def account_of(
    process: Process, server: McpServer, scope: ConnectionScope, authorization: AuthorizationServer
) -> str | None:
    """Whose token the server got."""
    return authorization.accounts.get(await told_by(process, server, scope))


async def drill(two: Two, *, people: int, calls: int) -> dict[str, int]:
    """Calls by turns of people and processes, four of each person at a time."""
    found = {"own": 0, "of another": 0}
    async with protected_server() as (authorization, registered):
        config = replace(registered.config, credentials=Credentials.PERSON, max_concurrency=64)
        server = await two.add(replace(registered, config=config))
        names = [UserId(f"usr_{number:03}") for number in range(people)]
        for person in names:
            await add_person(two, person)
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


async def drill_with_secrets(two: Two, *, people: int, calls: int) -> dict[str, int]:
    """The same with secrets that each person gives, in one process, and replaces in the other."""
    found = {"own": 0, "of another": 0, "replaced": 0}
    names = [UserId(f"usr_{number:03}") for number in range(people)]
    protected = Protected()
    async with serving(protected.app) as url:
        headers = {"X-Token": SecretRef("person:token")}
        server = await two.add(
            remote(f"{url}/mcp", credentials=Credentials.PERSON, headers=headers, max_concurrency=64)
        )

        async def give(process: Process, person: UserId, token: str) -> None:
            protected.people[token] = person
            given = GivenSecrets(
                binding=binding_of_secrets(server.config), revision=token, given_at=START, values={"token": token}
            )
            assert await process.stores.person_secrets.save(AccountOwner(ORG, server.id, person), lambda _: given)

        async def call(number: int) -> None:
            person, process = names[number % people], (two.mine, two.other)[number // people % 2]
            scope = ConnectionScope(organization_id=ORG, person_id=person)
            whose = await told_by(process, server, scope)
            found["own" if whose == person else "of another"] += 1

        for person in names:
            await add_person(two, person)
        at_a_time = 4 * people
        for round_, first in enumerate(range(0, calls, at_a_time)):
            # A tenth of them, as each needs new connections, which wait for their turn.
            replaced = names[round_ % 10 :: 10] if round_ else names
            for person in replaced:
                await give((two.mine, two.other)[round_ % 2], person, f"token {round_} of {person}")
            await asyncio.gather(*(call(number) for number in range(first, min(calls, first + at_a_time))))
            found["replaced"] += len(replaced) if round_ else 0
        return found


async def test_each_call_has_its_persons_secret_while_some_are_replaced(two: Two) -> None:
    found = await drill_with_secrets(two, people=10, calls=200)
    assert found == {"own": 200, "of another": 0, "replaced": 4}


@pytest.mark.timeout(1800)
@pytest.mark.skipif("DRAGOMAN_TEST_ACCOUNTS" not in os.environ, reason="opt in with DRAGOMAN_TEST_ACCOUNTS=1")
async def test_ten_thousand_calls_of_a_hundred_people_mix_up_no_secrets(two: Two) -> None:
    found = await drill_with_secrets(two, people=100, calls=10_000)
    assert found == {"own": 10_000, "of another": 0, "replaced": 240}


async def test_a_secret_that_is_replaced_or_deleted_in_one_process_is_so_in_the_other(two: Two) -> None:
    protected, ann = Protected(people={"tok-1": "first", "tok-2": "second"}), UserId("usr_ann")
    await add_person(two, ann)
    async with serving(protected.app) as url:
        headers = {"X-Token": SecretRef("person:token")}
        server = await two.add(remote(f"{url}/mcp", credentials=Credentials.PERSON, headers=headers))
        owner, scope = AccountOwner(ORG, server.id, ann), ConnectionScope(organization_id=ORG, person_id=ann)
        binding = binding_of_secrets(server.config)

        async def there() -> str:
            try:
                return text_of(await two.other.connections.call_tool(server, scope, a_call("whoami")))
            except McpFailure as failure:
                return failure.kind

        secrets = two.mine.stores.person_secrets
        for token, told in protected.people.items():
            given = GivenSecrets(binding=binding, revision=token, given_at=START, values={"token": token})
            await secrets.save(owner, lambda _, given=given: given)  # type: ignore[misc]
            async with asyncio.timeout(PATIENCE_S):
                while await there() != told:
                    pass
        assert await secrets.remove(owner)
        async with asyncio.timeout(PATIENCE_S):
            while await there() != McpFailureKind.NEEDS_AUTH:
                pass
