"""What clients of other protocols send with a run, in the stores: their tools, instructions and
history."""

from dataclasses import replace

import pytest

from application.runs.ports import RunFilter
from application.system.pages import PageRequest
from domain.ids import MessageId, OrganizationId, RunId
from domain.json_value import JsonObject
from domain.threads.message import Message, Role, TextContent
from domain.tools.client_tool import ClientTool
from tests.builders import ORG, OTHER_ORG, RUN, START, a_new_run, a_run, a_run_id, a_thread, a_thread_id
from tests.contract.run_steps import claim
from tests.contract.stores import Stores

WEATHER = ClientTool(name="weather", description="Of a city.", parameters={"type": "object", "properties": {"b": {}}})


@pytest.mark.requirement("X1", "X2")
async def test_tools_and_instructions_of_the_client_are_read_back_by_the_worker(run_stores: Stores) -> None:
    request: JsonObject = {"model": "guide", "tools": [1, {"ü": None}]}
    asked = replace(
        a_run(),
        client_request=request,
        client_tools=(WEATHER, ClientTool(name="now")),
        instructions="Be kind.",
        history_key="k",
    )
    await run_stores.runs.start(a_new_run(asked))
    claimed = (await claim(run_stores, RUN)).run
    assert claimed.client_request == request
    assert (claimed.client_tools, claimed.instructions, claimed.history_key) == (
        asked.client_tools,
        "Be kind.",
        "k",
    )


@pytest.mark.requirement("X2")
async def test_the_history_of_a_new_thread_comes_before_the_input_of_its_run(run_stores: Stores) -> None:
    thread = replace(a_thread(), id=a_thread_id(7))
    run = replace(a_run(), thread_id=thread.id)
    said = ((Role.USER, "hi"), (Role.ASSISTANT, "Hello."))
    history = tuple(
        Message(
            id=MessageId(f"msg_{place}"),
            thread_id=thread.id,
            run_id=None,
            role=role,
            content=(TextContent(text=text),),
            created_at=START,
        )
        for place, (role, text) in enumerate(said)
    )
    await run_stores.runs.start(replace(a_new_run(run, new_thread=thread), history=history))
    claimed = await claim(run_stores, run.id)
    assert [message.text for message in claimed.transcript[:2]] == ["hi", "Hello."]
    assert claimed.transcript[2].content == run.input


@pytest.mark.requirement("X2")
async def test_runs_are_found_by_the_digest_of_their_history_newest_first(run_stores: Stores) -> None:
    for number, key in ((2, "same"), (3, "other"), (4, "same"), (5, None)):
        thread = replace(a_thread(), id=a_thread_id(number))
        run = replace(a_run(), id=a_run_id(number), thread_id=thread.id, history_key=key)
        await run_stores.runs.start(a_new_run(run, new_thread=thread))

    async def found(organization_id: OrganizationId, key: str) -> list[RunId]:
        page = await run_stores.runs.page(organization_id, RunFilter(history_key=key), PageRequest())
        return [run.id for run in page.items]

    assert await found(ORG, "same") == [a_run_id(4), a_run_id(2)]
    assert await found(ORG, "none") == []
    assert await found(OTHER_ORG, "same") == []


@pytest.mark.requirement("X3", "X4")
async def test_the_newest_run_of_a_digest_is_its_first_page_of_one(run_stores: Stores) -> None:
    for number in (2, 3):
        thread = replace(a_thread(), id=a_thread_id(number))
        run = replace(a_run(), id=a_run_id(number), thread_id=thread.id, history_key="same")
        await run_stores.runs.start(a_new_run(run, new_thread=thread))
    wanted, one = RunFilter(history_key="same"), PageRequest(limit=1)
    first = await run_stores.runs.page(ORG, wanted, one)
    second = await run_stores.runs.page(ORG, wanted, replace(one, cursor=first.next_cursor))
    assert [run.id for run in (*first.items, *second.items)] == [a_run_id(3), a_run_id(2)]
    assert second.next_cursor is None
    assert (await run_stores.runs.page(OTHER_ORG, wanted, one)).items == ()
    assert (await run_stores.runs.page(ORG, RunFilter(history_key="none"), one)).items == ()
