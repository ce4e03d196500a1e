"""The contract of `SourceCopies`."""

from dataclasses import replace

import pytest

from domain.errors import ServiceError
from domain.sources.source import Source
from tests.builders import ORG, OTHER_ORG, THREAD, a_deletion
from tests.contract.stores import Stores
from tests.contract.test_sources import (
    LONG_AGO,
    OTHER_THREAD,
    a_source,
    a_source_id,
    added,
    deleted,
    found,
    put,
    thread_stores,
)

__all__ = ["thread_stores"]


async def copied(stores: Stores, original: Source, *, number: int = 7) -> Source:
    """A finished copy in the other thread."""
    draft = replace(original, id=a_source_id(number), thread_id=OTHER_THREAD)
    await stores.source_intake.begin(draft, stale_before=LONG_AGO)
    assert await stores.source_copies.fill(draft, original)
    await stores.source_intake.finish(draft, added(number))
    return draft


@pytest.mark.requirement("D4", "U6")
async def test_a_copy_has_the_bytes_and_the_text_and_both_live_without_the_other(thread_stores: Stores) -> None:
    sources = thread_stores.sources
    parts = [bytes([number]) * 10 for number in range(9)]
    texts = [f"walrus {number}" for number in range(230)]
    original = await put(thread_stores, a_source(), *texts, parts=parts)
    copy = await copied(thread_stores, original)
    again = await copied(thread_stores, original, number=8)

    assert await sources.get(ORG, copy.id) == copy
    assert [await sources.part(ORG, copy.id, position) for position in range(10)] == [*parts, None]
    for thread_id, sources_found in ((THREAD, {original.id}), (OTHER_THREAD, {copy.id, again.id})):
        pieces = await found(thread_stores, "walrus", thread_id=thread_id, limit=1_000)
        assert {piece.source_id for piece in pieces} == sources_found
        assert len(pieces) == len(texts) * len(sources_found)

    assert await sources.delete(ORG, again.id, deleted())
    assert len(await found(thread_stores, "walrus", limit=1_000)) == len(texts)
    assert await thread_stores.threads.delete(ORG, THREAD, a_deletion())
    assert len(await found(thread_stores, "walrus", thread_id=OTHER_THREAD, limit=1_000)) == len(texts)
    assert await sources.part(ORG, copy.id, 8) == parts[8]


async def test_a_source_that_is_deleted_or_replaced_meanwhile_is_not_copied_whole(thread_stores: Stores) -> None:
    original = await put(thread_stores, a_source(), "walrus")
    draft = a_source(7, thread_id=OTHER_THREAD)
    await thread_stores.source_intake.begin(draft, stale_before=LONG_AGO)
    assert not await thread_stores.source_copies.fill(draft, replace(original, digest="ff" * 32))
    await thread_stores.source_intake.discard(draft)
    await thread_stores.source_intake.begin(draft, stale_before=LONG_AGO)
    await thread_stores.sources.delete(ORG, original.id, deleted())
    assert not await thread_stores.source_copies.fill(draft, original)


async def test_a_draft_that_is_gone_is_not_filled_nor_a_source_of_others_copied(thread_stores: Stores) -> None:
    original = await put(thread_stores, a_source(), "walrus")
    draft = a_source(7, thread_id=OTHER_THREAD)
    with pytest.raises(ServiceError) as refused:
        await thread_stores.source_copies.fill(draft, original)
    assert refused.value.code == "source_not_found"
    await thread_stores.source_intake.begin(draft, stale_before=LONG_AGO)
    assert not await thread_stores.source_copies.fill(draft, replace(original, organization_id=OTHER_ORG))
