"""The contract of `GatewayNotes` and `ExpiredNotes`: questions, answers and cancellations between
processes."""

import asyncio
from dataclasses import replace

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.ids import GatewayNoteId, GatewaySessionId
from tests.builders import ORG, OTHER_ORG, after, numbered
from tests.contract.stores import Stores
from tests.contract.test_gateway import SESSION, a_call, opened


def a_note(number: int = 1, kind: GatewayNoteKind = GatewayNoteKind.QUESTION) -> GatewayNote:
    return GatewayNote(
        id=GatewayNoteId(numbered("gwn", number)),
        organization_id=ORG,
        session_id=SESSION,
        kind=kind,
        call_id=a_call().id,
        sealed=b"asked",
        created_at=after(number),
        expires_at=after(100 + number),
    )


@pytest.mark.requirement("F5")
async def test_notes_of_a_call_are_read_in_their_order_by_their_session_alone(stores: Stores) -> None:
    await opened(stores)
    notes = (a_note(1), a_note(2, GatewayNoteKind.OUTCOME))
    await stores.gateway_notes.leave(*reversed(notes))
    await stores.gateway_notes.leave(replace(a_note(3), call_id=None, sealed=None, kind=GatewayNoteKind.CANCELLATION))

    assert await stores.gateway_notes.of_call(ORG, SESSION, a_call().id) == notes
    assert await stores.gateway_notes.get(ORG, SESSION, notes[0].id) == notes[0]
    assert await stores.gateway_notes.get(ORG, SESSION, "gwn_unknown") is None
    other = GatewaySessionId("gws_other")
    assert await stores.gateway_notes.get(ORG, other, notes[0].id) is None
    assert await stores.gateway_notes.get(OTHER_ORG, SESSION, notes[0].id) is None
    assert await stores.gateway_notes.of_call(OTHER_ORG, SESSION, a_call().id) == ()
    with pytest.raises(ServiceError) as refused:
        await stores.gateway_notes.leave(replace(a_note(4), session_id=other))
    assert refused.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.requirement("F5")
async def test_a_cancellation_that_is_left_again_and_again_is_there_once(stores: Stores) -> None:
    await opened(stores)
    note = a_note(1, GatewayNoteKind.CANCELLATION)
    await asyncio.gather(*(stores.gateway_notes.leave(note) for _ in range(5)))
    assert await stores.gateway_notes.of_call(ORG, SESSION, a_call().id) == (note,)


@pytest.mark.requirement("F5")
async def test_questions_are_answered_together_and_once_however_many_try(stores: Stores) -> None:
    await opened(stores)
    first, second = a_note(1), a_note(2)
    await stores.gateway_notes.leave(first, second)
    answers = {first.id: b"one", second.id: b"two"}

    assert not await stores.gateway_notes.answer(OTHER_ORG, SESSION, answers, at=after(5))
    assert not await stores.gateway_notes.answer(ORG, GatewaySessionId("gws_other"), answers, at=after(5))
    tries = [stores.gateway_notes.answer(ORG, SESSION, answers, at=after(5)) for _ in range(4)]
    assert sorted(await asyncio.gather(*tries)) == [False, False, False, True]

    stored = await stores.gateway_notes.of_call(ORG, SESSION, a_call().id)
    assert [note.answer for note in stored] == [b"one", b"two"]


@pytest.mark.requirement("F5")
async def test_none_is_answered_if_one_of_them_is_over(stores: Stores) -> None:
    await opened(stores)
    first, second = a_note(1), a_note(2)
    await stores.gateway_notes.leave(first, second)
    late = after(101)
    assert not await stores.gateway_notes.answer(ORG, SESSION, {first.id: b"1", second.id: b"2"}, at=late)
    await stores.gateway_notes.remove(OTHER_ORG, second.id)
    assert await stores.gateway_notes.get(ORG, SESSION, second.id) == second
    await stores.gateway_notes.remove(ORG, second.id)
    assert not await stores.gateway_notes.answer(ORG, SESSION, {first.id: b"1", second.id: b"2"}, at=after(5))
    assert await stores.gateway_notes.of_call(ORG, SESSION, a_call().id) == (first,)


@pytest.mark.requirement("F5", "E3")
async def test_a_call_that_asks_is_waited_for_and_its_expired_notes_are_forgotten(stores: Stores) -> None:
    await opened(stores)
    call = replace(a_call(), due_at=after(20))
    await stores.gateway_ledger.intend(call)

    await stores.gateway_notes.leave(a_note(1), a_note(2), due_at=after(500))
    await stores.gateway_notes.leave(a_note(1))

    assert await stores.lost_calls.lost(before=after(400), limit=9) == ()
    ((_, lost),) = await stores.lost_calls.lost(before=after(501), limit=9)
    assert lost == replace(call, due_at=after(500))
    assert await stores.expired_notes.forget(before=after(102)) == 1
    assert await stores.gateway_notes.of_call(ORG, SESSION, call.id) == (a_note(2),)
