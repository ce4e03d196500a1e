"""The contracts of `SourceIntake`, `SourceStore` and `SourceSearch`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from application.audit.ports import AuditFilter
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, SourceId, ThreadId
from domain.sources.chunking import chunks_of
from domain.sources.ranking import FoundChunk, ranked
from domain.sources.source import MAX_SOURCES, IndexedChunk, Source, SourceKind
from domain.sources.words import SearchQuery, words_of
from tests.builders import (
    ORG,
    OTHER_ORG,
    RUN,
    THREAD,
    a_deletion,
    a_thread,
    a_thread_id,
    after,
    an_audit_event,
    an_organization,
    numbered,
)
from tests.contract.paging import all_of, pages_of
from tests.contract.stores import Leg, Stores

OTHER_THREAD = a_thread_id(2)
LONG_AGO = after(-3600)


def a_source_id(number: int) -> SourceId:
    return SourceId(numbered("src", number))


def a_source(
    number: int = 1,
    *,
    name: str = "notes.txt",
    kind: SourceKind = SourceKind.TEXT,
    thread_id: ThreadId = THREAD,
    organization_id: OrganizationId = ORG,
) -> Source:
    """Source `number`, made at that many seconds."""
    return Source(
        id=a_source_id(number),
        organization_id=organization_id,
        thread_id=thread_id,
        name=name,
        kind=kind,
        size=3,
        digest="ab" * 32,
        created_at=after(number),
    )


def added(number: int = 1) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.SOURCE_ADDED)


def deleted(number: int = 9) -> AuditEvent:
    return an_audit_event(number, action=AuditAction.SOURCE_DELETED)


def indexed(text: str, kind: SourceKind = SourceKind.TEXT) -> list[IndexedChunk]:
    return [IndexedChunk(chunk=chunk, words=" ".join(words_of(chunk.found_by))) for chunk in chunks_of(text, kind)]


async def put(stores: Stores, source: Source, *texts: str, parts: Sequence[bytes] = (b"abc",)) -> Source:
    """A finished source, each text a piece of it."""
    chunks = [piece for text in texts for piece in indexed(text, source.kind)]
    await stores.source_intake.begin(source, stale_before=LONG_AGO)
    for position, part in enumerate(parts):
        await stores.source_intake.put_part(source, position, part)
    if chunks:
        await stores.source_intake.put_chunks(source, 0, chunks)
    done = replace(source, chunks=len(chunks))
    number = int(source.id.removeprefix("src_"))
    await stores.source_intake.finish(done, replace(added(number), organization_id=source.organization_id))
    return done


async def found(
    stores: Stores,
    question: str,
    *,
    thread_id: ThreadId = THREAD,
    organization_id: OrganizationId = ORG,
    source_ids: Sequence[SourceId] | None = None,
    limit: int = 50,
) -> tuple[FoundChunk, ...]:
    """What is found, in the order it is shown in."""
    query = SearchQuery.of(question)
    pieces = await stores.source_search.find(organization_id, thread_id, query, source_ids=source_ids, limit=limit)
    return ranked(pieces, query, limit)


async def texts_found(stores: Stores, question: str) -> list[str]:
    return [piece.chunk.text for piece in await found(stores, question)]


@pytest.fixture
async def thread_stores(stores: Stores) -> Stores:
    """The backend under test with two threads of ORG."""
    await stores.threads.add(a_thread())
    await stores.threads.add(a_thread(OTHER_THREAD))
    return stores


@pytest.mark.requirement("D4")
async def test_a_source_is_seen_when_it_is_finished_and_its_bytes_come_back_part_by_part(thread_stores: Stores) -> None:
    sources, intake = thread_stores.sources, thread_stores.source_intake
    draft = a_source()
    await intake.begin(draft, stale_before=LONG_AGO)
    await intake.put_part(draft, 0, b"\x00\xff" * 500_000)
    await intake.put_part(draft, 1, b"end")
    await intake.put_chunks(draft, 0, indexed("walrus"))

    assert await sources.get(ORG, draft.id) is None
    assert await sources.of_thread(ORG, THREAD) == ()
    assert await all_of(partial(sources.page, ORG, THREAD)) == ()
    assert await found(thread_stores, "walrus") == ()

    done = replace(
        draft,
        size=1_000_003,
        kind=SourceKind.PDF,
        chunks=1,
        problem="The PDF is damaged.",
        run_id=RUN,
        digest="cd" * 32,
    )
    await intake.finish(done, added())

    assert await sources.get(ORG, draft.id) == done
    assert await sources.of_thread(ORG, THREAD) == (done,)
    assert await sources.part(ORG, draft.id, 0) == b"\x00\xff" * 500_000
    assert await sources.part(ORG, draft.id, 1) == b"end"
    assert await sources.part(ORG, draft.id, 2) is None
    assert len(await found(thread_stores, "walrus")) == 1


async def test_sources_are_listed_newest_first_in_pages(thread_stores: Stores) -> None:
    for number in (2, 1, 3):
        await put(thread_stores, a_source(number))
    await put(thread_stores, a_source(4, thread_id=OTHER_THREAD))

    pages = await pages_of(partial(thread_stores.sources.page, ORG, THREAD), limit=2)

    assert [[source.id for source in page] for page in pages] == [[a_source_id(3), a_source_id(2)], [a_source_id(1)]]
    assert [source.id for source in await thread_stores.sources.of_thread(ORG, THREAD)] == [
        a_source_id(3),
        a_source_id(2),
        a_source_id(1),
    ]


async def test_a_draft_that_is_discarded_leaves_nothing_and_takes_nothing_more(thread_stores: Stores) -> None:
    intake = thread_stores.source_intake
    draft = a_source()
    await intake.begin(draft, stale_before=LONG_AGO)
    await intake.put_part(draft, 0, b"abc")
    await intake.discard(draft)

    assert await thread_stores.sources.part(ORG, draft.id, 0) is None
    for late in (
        intake.put_part(draft, 1, b"x"),
        intake.put_chunks(draft, 0, indexed("x")),
        intake.finish(draft, added()),
    ):
        with pytest.raises(ServiceError) as refused:
            await late
        assert refused.value.code == "source_not_found"
    assert await all_of(partial(thread_stores.audit.page, ORG, AuditFilter())) == ()


async def test_a_finished_source_is_not_discarded(thread_stores: Stores) -> None:
    source = await put(thread_stores, a_source(), "walrus")
    await thread_stores.source_intake.discard(source)
    assert await thread_stores.sources.get(ORG, source.id) == source


async def test_a_source_with_a_known_id_takes_the_place_of_the_former(thread_stores: Stores) -> None:
    await put(thread_stores, a_source(), "walrus", parts=(b"first", b"more"))
    await thread_stores.source_intake.begin(a_source(name="new.txt"), stale_before=LONG_AGO)
    await thread_stores.source_intake.put_part(a_source(), 0, b"second")
    await thread_stores.source_intake.finish(a_source(name="new.txt"), added(2))

    assert [source.name for source in await thread_stores.sources.of_thread(ORG, THREAD)] == ["new.txt"]
    assert await thread_stores.sources.part(ORG, a_source_id(1), 0) == b"second"
    assert await thread_stores.sources.part(ORG, a_source_id(1), 1) is None
    assert await found(thread_stores, "walrus") == ()


async def test_drafts_that_nobody_finished_are_forgotten_when_another_source_comes(thread_stores: Stores) -> None:
    intake = thread_stores.source_intake
    for number in (1, 5):
        await intake.begin(a_source(number), stale_before=LONG_AGO)
        await intake.put_part(a_source(number), 0, b"abc")
    await intake.begin(a_source(6), stale_before=after(3))

    assert await thread_stores.sources.part(ORG, a_source_id(1), 0) is None
    assert await thread_stores.sources.part(ORG, a_source_id(5), 0) == b"abc"


async def test_a_thread_takes_a_limited_number_of_sources(thread_stores: Stores) -> None:
    for number in range(1, MAX_SOURCES + 1):
        await thread_stores.source_intake.begin(a_source(number), stale_before=LONG_AGO)
    with pytest.raises(ServiceError) as refused:
        await thread_stores.source_intake.begin(a_source(MAX_SOURCES + 1), stale_before=LONG_AGO)
    assert (refused.value.code, refused.value.kind) == ("sources_full", ErrorKind.CONFLICT)
    await thread_stores.source_intake.begin(a_source(1, thread_id=OTHER_THREAD), stale_before=LONG_AGO)


async def test_a_thread_that_is_not_there_takes_no_source(thread_stores: Stores) -> None:
    for draft in (a_source(thread_id=a_thread_id(9)), a_source(organization_id=OTHER_ORG)):
        with pytest.raises(ServiceError) as refused:
            await thread_stores.source_intake.begin(draft, stale_before=LONG_AGO)
        assert refused.value.code == "thread_not_found"


@pytest.mark.requirement("D4")
async def test_a_deleted_source_is_gone_with_its_bytes_and_its_pieces(thread_stores: Stores) -> None:
    await put(thread_stores, a_source(), "walrus")
    await put(thread_stores, a_source(2), "walrus too")

    assert await thread_stores.sources.delete(ORG, a_source_id(1), deleted())
    assert not await thread_stores.sources.delete(ORG, a_source_id(1), deleted(10))

    assert await thread_stores.sources.get(ORG, a_source_id(1)) is None
    assert await thread_stores.sources.part(ORG, a_source_id(1), 0) is None
    assert await texts_found(thread_stores, "walrus") == ["walrus too"]


@pytest.mark.requirement("E7")
async def test_sources_go_with_their_thread(thread_stores: Stores) -> None:
    await put(thread_stores, a_source(), "walrus")
    await put(thread_stores, a_source(2, thread_id=OTHER_THREAD), "walrus")
    await thread_stores.source_intake.begin(a_source(3), stale_before=LONG_AGO)

    assert await thread_stores.threads.delete(ORG, THREAD, a_deletion())

    assert await thread_stores.sources.get(ORG, a_source_id(1)) is None
    assert await thread_stores.sources.part(ORG, a_source_id(1), 0) is None
    assert await found(thread_stores, "walrus") == ()
    assert len(await found(thread_stores, "walrus", thread_id=OTHER_THREAD)) == 1
    with pytest.raises(ServiceError):
        await thread_stores.source_intake.put_part(a_source(3), 0, b"late")


@pytest.mark.requirement("C5")
async def test_what_happened_to_sources_is_audited(thread_stores: Stores) -> None:
    await put(thread_stores, a_source())
    await thread_stores.sources.delete(ORG, a_source_id(1), deleted(2))
    await thread_stores.sources.delete(ORG, a_source_id(1), deleted(3))
    assert await all_of(partial(thread_stores.audit.page, ORG, AuditFilter())) == (deleted(2), added(1))


@pytest.mark.requirement("C6", "D4")
async def test_another_organizations_and_another_threads_sources_do_not_exist(thread_stores: Stores) -> None:
    await put(thread_stores, a_source(), "walrus")

    assert await thread_stores.sources.get(OTHER_ORG, a_source_id(1)) is None
    assert await thread_stores.sources.part(OTHER_ORG, a_source_id(1), 0) is None
    assert await thread_stores.sources.of_thread(OTHER_ORG, THREAD) == ()
    assert await all_of(partial(thread_stores.sources.page, OTHER_ORG, THREAD)) == ()
    assert not await thread_stores.sources.delete(OTHER_ORG, a_source_id(1), deleted())
    assert await found(thread_stores, "walrus", organization_id=OTHER_ORG) == ()
    assert await found(thread_stores, "walrus", thread_id=OTHER_THREAD) == ()
    assert await found(thread_stores, "walrus", thread_id=OTHER_THREAD, source_ids=[a_source_id(1)]) == ()
    assert await found(thread_stores, "walrus") != ()


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("invoice", "The Invoices of March"),
        ("INVOICES", "an invoice"),
        ("cafe", "Le Café est fermé"),
        ("Straße", "in der STRASSE"),
        ("config", "configuration of the service"),
        ("2024", "paid on 2024-03-01"),
        ("東京", "会議は東京で開かれる"),
        ("snake_case", "the name snake_case stands here"),
        ("companies", "a company in Leeds"),
        ("Ünïcödé", "unicode"),
        ("привет", "Привет, мир"),
        ("C-3PO", "C 3PO said so"),
    ],
)
async def test_words_are_found_in_whatever_form_they_stand(thread_stores: Stores, question: str, text: str) -> None:
    await put(thread_stores, a_source(), text, "something else entirely")
    assert await texts_found(thread_stores, question) == [text]


async def test_a_short_word_finds_no_beginnings(thread_stores: Stores) -> None:
    await put(thread_stores, a_source(), "cartography", "a car")
    assert await texts_found(thread_stores, "car") == ["a car"]


@pytest.mark.requirement("D4")
async def test_what_has_more_and_rarer_words_of_the_question_comes_first(thread_stores: Stores) -> None:
    await put(
        thread_stores,
        a_source(),
        "The budget of the department was approved.",
        "Refunds of travel costs are approved by the budget holder within ten days.",
        "The refund deadline is ten days after the journey.",
        "Nothing of interest.",
    )
    assert await texts_found(thread_stores, "what is the refund deadline?") == [
        "The refund deadline is ten days after the journey.",
        "Refunds of travel costs are approved by the budget holder within ten days.",
    ]


async def test_a_piece_comes_back_with_its_place(thread_stores: Stores) -> None:
    text = "# Manual\n\nfirst\n\n## Install\n\n" + "x " * 200 + "\n\n## Use\n\nrun the walrus\n"
    await put(thread_stores, a_source(name="m.md", kind=SourceKind.MARKDOWN), text)

    (piece,) = await found(thread_stores, "walrus")

    assert (piece.source_id, piece.source_name) == (a_source_id(1), "m.md")
    assert (piece.chunk.start_line, piece.chunk.end_line, piece.chunk.page) == (9, 11, None)
    assert piece.chunk.heading == "Manual > Use"
    assert piece.chunk.text == "## Use\n\nrun the walrus"


async def test_a_search_may_be_limited_to_some_sources(thread_stores: Stores) -> None:
    for number in (1, 2, 3):
        await put(thread_stores, a_source(number), "walrus")
    wanted = [a_source_id(1), a_source_id(3)]
    pieces = await found(thread_stores, "walrus", source_ids=wanted)
    assert sorted(piece.source_id for piece in pieces) == wanted
    assert await found(thread_stores, "walrus", source_ids=[]) == ()


async def test_the_pieces_with_most_words_are_kept_where_there_are_too_many(thread_stores: Stores) -> None:
    common = [f"walrus number {number}" for number in range(30)]
    await put(thread_stores, a_source(), *common, "walrus with tusks")
    best = await found(thread_stores, "walrus tusks", limit=5)
    assert len(best) == 5
    assert best[0].chunk.text == "walrus with tusks"


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    "question",
    [
        '"unclosed',
        "walrus AND",
        "NOT walrus",
        "NEAR(walrus 5",
        "walrus*",
        "thread_id : thr",
        "words: walrus ^",
        "(((",
        "a:b:c & | ! <-> <2>",
        "walrus'; DROP TABLE source; --",
        "\\",
        "%_",
        "'' OR 1=1",
        "walrus\x00walrus",
        "\ud800 walrus",
        "🦭 walrus",
        "-walrus",
        "{walrus} : x",
        "walrus " * 5_000,
    ],
)
async def test_nothing_in_a_question_is_an_operator(thread_stores: Stores, question: str) -> None:
    await put(thread_stores, a_source(), "the walrus")
    await put(thread_stores, a_source(2, thread_id=OTHER_THREAD), "the other walrus")
    texts = await texts_found(thread_stores, question)
    assert texts == (["the walrus"] if "walrus" in question else [])


@given(text=st.text(max_size=300))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_any_text_can_be_stored_and_finds_itself(leg: Leg, text: str) -> None:
    async with leg.open(an_organization(ORG)) as stores:
        await stores.threads.add(a_thread())
        await put(stores, a_source(), text)
        words = SearchQuery.of(text).words
        pieces = await found(stores, text)
        # SQLite knows no letters that came to Unicode after version 6.1.
        assert pieces or not any(word.isascii() for word in words)
