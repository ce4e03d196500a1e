"""How the provider's items of messages are stored: encrypted, bound to their message, and gone with
it."""

import logging
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select, update

from application.runs.ports import ClaimedRun
from domain.ids import MessageId, RunId
from domain.runs.run import MultitaskStrategy
from domain.threads.provider_items import ProviderItems
from domain.threads.thread import ForkPoint
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.runs.journal import SqlRunJournal
from infrastructure.persistence.runs.leases import SqlRunLeases
from infrastructure.persistence.secrets.rotated_items import ITEMS_IN_A_STEP
from infrastructure.persistence.secrets.vault import SqlSecretVault
from infrastructure.persistence.tables import message
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import ORG, RUN, THREAD, a_deletion, a_run_id, a_thread, a_thread_id, after
from tests.contract.run_steps import claim, finish_step, reply_step, run_number, start, start_and_claim
from tests.contract.stores import Stores

OLD, NEW = "an old passphrase of the tests", "a new passphrase of the tests"
MARKER = b"planted-reasoning"
ITEMS = ProviderItems(origin="openai api.openai.com responses gpt-test", data=b'[{"id":"planted-reasoning"}]')


@pytest.fixture
def box() -> SecretBox:
    return SecretBox([OLD])


@pytest.fixture
def keyed(stores: Stores, database: Database, box: SecretBox) -> Stores:
    """Stores of runs that encrypt with `box`."""
    wakeups = InProcessWakeups()
    return replace(
        stores,
        leases=SqlRunLeases(database=database, wakeups=wakeups, box=box),
        journal=SqlRunJournal(database=database, wakeups=wakeups, box=box),
    )


async def replied(stores: Stores, number: int = 1) -> MessageId:
    """A completed run with one reply that has items; the id of its message."""
    claimed = await start_and_claim(stores, run_number(number))
    step = reply_step(claimed.run)
    reply = replace(step.messages[0], items=ITEMS)
    await stores.journal.commit(claimed.lease, replace(step, messages=(reply,)))
    await stores.journal.commit(claimed.lease, finish_step(step.run))
    return reply.id


async def stored_items(database: Database) -> dict[RunId, tuple[str | None, bytes | None]]:
    """The columns of each message of the model, by its run."""
    statement = select(message.c.run_id, message.c.items_key, message.c.provider_items).where(
        message.c.role == "assistant"
    )
    rows = await database.read(lambda connection: connection.execute(statement).all(), scope=SYSTEM)
    return {RunId(row.run_id): (row.items_key, row.provider_items) for row in rows}


async def next_claim(stores: Stores, number: int = 90) -> ClaimedRun:
    return await start_and_claim(stores, run_number(number))


def items_in(claimed: ClaimedRun) -> list[ProviderItems]:
    return [entry.items for entry in claimed.transcript if entry.items is not None]


@pytest.mark.requirement("H1")
async def test_items_are_encrypted_at_rest(keyed: Stores, database: Database) -> None:
    await replied(keyed)
    [(_, sealed)] = (await stored_items(database)).values()
    assert sealed is not None
    assert MARKER not in sealed
    assert ITEMS.origin.encode() not in sealed
    assert items_in(await next_claim(keyed)) == [ITEMS]


@pytest.mark.requirement("U6")
async def test_a_fork_has_the_items_of_the_messages_that_it_copied(keyed: Stores, database: Database) -> None:
    await replied(keyed)
    fork = a_thread(a_thread_id(7), forked_from=ForkPoint(thread_id=THREAD, before=None))
    await keyed.threads.fork(fork)
    claimed = await start_and_claim(keyed, run_number(90, thread_id=fork.id))
    assert items_in(claimed) == [ITEMS]


@pytest.mark.requirement("H1")
async def test_a_reply_without_items_has_empty_columns(keyed: Stores, database: Database) -> None:
    claimed = await start_and_claim(keyed)
    await keyed.journal.commit(claimed.lease, reply_step(claimed.run))
    assert await stored_items(database) == {RUN: (None, None)}


@pytest.mark.requirement("H1", "C6")
@pytest.mark.parametrize("moved", ["message", "organization"])
async def test_items_of_another_message_or_organization_are_not_used(
    keyed: Stores, database: Database, box: SecretBox, moved: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = await replied(keyed, 1)
    await replied(keyed, 2)
    foreign = f"org_other {first}\n" if moved == "organization" else f"{ORG} {first}\n"
    sealed = box.encrypt(foreign.encode() + b"origin\n[]")
    target = a_run_id(1) if moved == "organization" else a_run_id(2)

    def move(connection: Connection) -> None:
        connection.execute(update(message).where(message.c.run_id == target).values(provider_items=sealed))

    await database.write(move, scope=SYSTEM)
    with caplog.at_level(logging.WARNING):
        assert items_in(await next_claim(keyed)) == [ITEMS]
    assert "provider items of a message cannot be decrypted" in caplog.text


@pytest.mark.requirement("H1", "B12")
async def test_with_a_lost_key_the_thread_goes_on_neutrally(
    keyed: Stores, box: SecretBox, caplog: pytest.LogCaptureFixture
) -> None:
    await replied(keyed)
    box.use([NEW])
    with caplog.at_level(logging.WARNING):
        claimed = await next_claim(keyed)
    assert items_in(claimed) == []
    assert "Let me see." in [entry.text for entry in claimed.transcript]
    assert MARKER.decode() not in caplog.text


@pytest.mark.requirement("H1", "B12")
async def test_a_rotation_encrypts_items_with_the_newest_key(keyed: Stores, database: Database, box: SecretBox) -> None:
    for number in range(3):
        await replied(keyed, number + 1)
    vault = SqlSecretVault(database=database, box=box)
    box.use([NEW, OLD])

    steps = [await vault.reencrypt(2) for _ in range(2)]

    assert [(step.reencrypted, step.remaining) for step in steps] == [(2, 1), (1, 0)]
    assert ITEMS_IN_A_STEP > 2
    box.use([NEW])
    assert items_in(await next_claim(keyed)) == [ITEMS] * 3


@pytest.mark.requirement("H1", "B12")
async def test_a_rotation_removes_items_that_no_key_decrypts(keyed: Stores, database: Database, box: SecretBox) -> None:
    await replied(keyed)
    box.use([NEW])
    done = await SqlSecretVault(database=database, box=box).reencrypt(10)
    assert (done.reencrypted, done.remaining) == (1, 0)
    assert list((await stored_items(database)).values()) == [(None, None)]


@pytest.mark.requirement("H1", "E5")
async def test_items_of_a_rolled_back_run_are_removed(keyed: Stores, database: Database) -> None:
    claimed = await start_and_claim(keyed, run_number(1))
    step = reply_step(claimed.run)
    await keyed.journal.commit(claimed.lease, replace(step, messages=(replace(step.messages[0], items=ITEMS),)))
    assert (await stored_items(database))[a_run_id(1)][1] is not None
    await start(keyed, run_number(2), strategy=MultitaskStrategy.ROLLBACK)
    await keyed.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await stored_items(database) == {a_run_id(1): (None, None)}
    assert items_in(await claim(keyed, a_run_id(2))) == []


@pytest.mark.requirement("H1", "E7")
@pytest.mark.parametrize("how", ["deleted", "retention"])
async def test_items_are_gone_with_their_thread(keyed: Stores, database: Database, how: str) -> None:
    await replied(keyed)
    if how == "deleted":
        assert await keyed.threads.delete(ORG, THREAD, a_deletion())
    else:
        while (await keyed.retention.remove(ORG, THREAD, after(1_000))).more:
            pass
    assert await stored_items(database) == {}
