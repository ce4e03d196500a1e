"""Pages of runs, messages and events with large images end before their limit, and nothing is left
out."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from application.runs.ports import RunFilter
from domain.runs.events import RunEvent
from domain.threads.message import FileContent, ImageContent, UserContent
from domain.tools.client_tool import ClientTool
from infrastructure.persistence.columns.page_bytes import PAGE_BYTES
from tests.builders import ORG, RUN, THREAD, a_message, a_run, a_run_id, after
from tests.contract.paging import pages_of
from tests.contract.run_steps import reply_step, run_number, start, start_and_claim
from tests.contract.stores import Stores

pytestmark = pytest.mark.requirement("H5")
PICTURE = ImageContent(media_type="image/png", data="A" * (PAGE_BYTES // 2 - 1_000))
HUGE = FileContent(media_type="application/zip", data="A" * PAGE_BYTES)


def sizes(pages: Sequence[Sequence[object]]) -> list[int]:
    return [len(page) for page in pages]


async def test_runs(stores: Stores) -> None:
    inputs: list[UserContent] = [PICTURE, PICTURE, PICTURE, HUGE]
    for number, part in enumerate(inputs, 1):
        await start(stores, a_run(a_run_id(number), input=(part,), created_at=after(number)))
    pages = await pages_of(partial(stores.runs.page, ORG, RunFilter()), limit=500)
    assert sizes(pages) == [1, 2, 1]
    assert [run.id for page in pages for run in page] == [a_run_id(number) for number in (4, 3, 2, 1)]


async def test_runs_with_tools_and_requests_of_clients(stores: Stores) -> None:
    text = "A" * (PAGE_BYTES // 4 - 1_000)
    tools = (ClientTool(name="weather", description=text),)
    for number in (1, 2, 3):
        run = a_run(a_run_id(number), created_at=after(number))
        await start(stores, replace(run, client_tools=tools, client_request={"tools": [text]}))
    pages = await pages_of(partial(stores.runs.page, ORG, RunFilter()), limit=500)
    assert sizes(pages) == [2, 1]


async def test_messages(stores: Stores) -> None:
    parts: list[UserContent] = [PICTURE, PICTURE, PICTURE, HUGE]
    messages = [a_message(number, content=(part,)) for number, part in enumerate(parts, 1)]
    for message in messages:
        await stores.threads.append(ORG, message)
    pages = await pages_of(partial(stores.threads.messages, ORG, THREAD), limit=500)
    assert sizes(pages) == [2, 1, 1]
    assert [message for page in pages for message in page] == messages


async def test_events(stores: Stores) -> None:
    claimed = await start_and_claim(stores, run_number(1))
    text, run = "A" * (PAGE_BYTES // 2 - 1_000), claimed.run
    for _ in range(3):
        step = reply_step(run, text=text)
        await stores.journal.commit(claimed.lease, step)
        run = step.run
    last = 0
    pages: list[tuple[RunEvent, ...]] = []
    while page := await stores.runs.events(ORG, RUN, after_seq=last, limit=500):
        pages.append(page)
        last = page[-1].seq
    events = [event for page in pages for event in page]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert sum(str(event.data).count(text) for event in events) == 3
    assert [sum(str(event.data).count(text) for event in page) for page in pages] == [2, 1]
