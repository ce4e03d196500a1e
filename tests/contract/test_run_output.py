"""Output schemas and structured outputs of runs in the stores."""

from dataclasses import replace

import pytest

from domain.json_value import JsonObject
from tests.builders import RUN, a_new_run, a_run
from tests.contract.run_steps import claim, finish_step, stored
from tests.contract.stores import Stores


@pytest.mark.requirement("H3")
async def test_an_output_schema_and_the_object_of_the_answer_are_read_back_in_their_order(run_stores: Stores) -> None:
    schema: JsonObject = {"type": "object", "properties": {"b": {"type": "string"}, "a": {}}, "required": ["b"]}
    await run_stores.runs.start(a_new_run(replace(a_run(), output_schema=schema)))
    claimed = await claim(run_stores, RUN)
    assert claimed.run.output_schema == schema
    assert (await stored(run_stores, RUN)).output_json is None
    found: JsonObject = {"b": "x\x00y", "a": [1, 2**70, None, {"ü": 0.5}]}
    step = finish_step(claimed.run)
    await run_stores.journal.commit(claimed.lease, replace(step, run=replace(step.run, output_json=found)))
    after_end = await stored(run_stores, RUN)
    assert after_end.output_json == found
    assert [*found] == [*(after_end.output_json or {})]
    assert after_end.output_schema == schema
