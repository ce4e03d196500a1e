"""The end of a rolled-back run deletes nothing of its images and files."""

from dataclasses import replace

import pytest

from domain.runs.run import MultitaskStrategy
from domain.threads.message import FileContent, ImageContent, Role, TextContent
from domain.tools.result import ToolResult
from tests.builders import ORG, RUN, a_message, a_settled_call, a_tool_call
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import (
    finish_step,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    stored,
)
from tests.contract.stores import Stores


@pytest.mark.requirement("E5", "H5")
async def test_the_images_and_files_of_a_rolled_back_run_stay(run_stores: Stores) -> None:
    data = "JVBERi0xLjc="
    file, image = FileContent(media_type="application/pdf", data=data), ImageContent(media_type="image/png", data=data)
    asking = replace(run_number(1), input=(TextContent(text="Look."), file, image))
    claimed = await start_and_claim(run_stores, asking)
    call = a_tool_call(0)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    result = ToolResult.succeeded("a chart", (image,), (file,))
    message = a_message(9, run_id=RUN, role=Role.TOOL, content=(result.as_content(call.id, call.name),))
    answered = replace(settle_step(claimed.run, a_settled_call(call, result)), messages=(message,))
    await run_stores.journal.commit(claimed.lease, answered)
    await start(run_stores, run_number(2), strategy=MultitaskStrategy.ROLLBACK)

    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))

    assert (await stored(run_stores, RUN)).input == asking.input
    assert (await messages_of(run_stores.runs, ORG, RUN))[-1].tool_results == (result.as_content(call.id, call.name),)
    assert (await run_stores.runs.tool_calls(ORG, RUN))[0].result == result
