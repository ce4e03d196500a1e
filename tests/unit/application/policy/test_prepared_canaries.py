"""Forms of canary tokens are made beside the event loop, once for all runs of an agent."""

import asyncio
from dataclasses import replace

import pytest

from application.policy.canary_guard import CanaryGuard
from domain.agents.agent import Agent
from domain.policy.canary import MAX_TOKENS, CanaryToken
from domain.threads.message import TextContent
from tests.builders import RUN, a_run_id, an_agent
from tests.processor_time import processor_time

pytestmark = pytest.mark.requirement("C4", "S3")


def an_agent_with_tokens(of: str, *, per_run: bool = False) -> Agent:
    """As many tokens as an agent may have; their forms take half a second."""
    tokens = tuple(
        CanaryToken(id=f"c{number}", secret=f"{of}-{number:04}-{number:020x}", per_run=per_run)
        for number in range(MAX_TOKENS)
    )
    agent = an_agent()
    return replace(agent, config=replace(agent.config, canary_tokens=tokens))


async def test_the_event_loop_goes_on_while_forms_are_made() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    working = asyncio.create_task(others())
    guard = await CanaryGuard.prepared(an_agent_with_tokens("loop"), RUN)
    working.cancel()
    assert turns > 1
    assert guard.words("It is loop-0007-00000000000000000007.") == "It is [canary:c7]."


async def test_runs_of_an_agent_share_the_forms_and_tokens_of_a_run_are_made_once() -> None:
    agent, own = an_agent_with_tokens("shared"), an_agent_with_tokens("own", per_run=True)
    for each in (agent, own):
        await CanaryGuard.prepared(each, RUN)
    guard = CanaryGuard.of(own, RUN)
    with processor_time(1.0):
        for number in range(20):
            CanaryGuard.of(agent, a_run_id(number))
            guard = CanaryGuard.of(own, RUN)
    token = own.config.canary_tokens[3].in_run(RUN)
    assert guard.input((TextContent(text=token),)) == (TextContent(text="[canary:c3]"),)


async def test_without_tokens_nothing_is_prepared() -> None:
    guard = await CanaryGuard.prepared(an_agent(), RUN)
    assert guard.stream() is None
