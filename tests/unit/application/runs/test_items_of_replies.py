"""The provider's items of replies: they come back with the next request, whoever makes it, and are
shown nowhere."""

import logging
from dataclasses import replace

import pytest

from domain.policy.canary import CanaryToken
from domain.runs.finish_reason import FinishReason
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from domain.threads.message import Message
from domain.threads.provider_items import MAX_ITEMS_BYTES, ProviderItems
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text")})}
ITEMS = ProviderItems(origin="acme", data=b'[{"type":"reasoning","encrypted_content":"planted-reasoning"}]')
OTHER = ProviderItems(origin="acme", data=b'[{"type":"reasoning","encrypted_content":"more of it"}]')


def reasoned(turn: ModelTurn, items: ProviderItems = ITEMS) -> ModelTurn:
    return replace(turn, items=items)


def items_of(messages: tuple[Message, ...]) -> list[ProviderItems]:
    return [message.items for message in messages if message.items is not None]


@pytest.mark.requirement("H1")
async def test_each_request_of_a_run_has_the_items_of_the_replies_before() -> None:
    turns = [reasoned(asks("mcp__s__read")), reasoned(asks("mcp__s__read", text="Once more."), OTHER), says()]
    harness = RunHarness(turns, servers=READ)
    await harness.play()
    assert [items_of(request.messages) for request in harness.model.requests] == [[], [ITEMS], [ITEMS, OTHER]]


@pytest.mark.requirement("H1")
async def test_another_worker_gets_the_items_after_a_wait_for_people() -> None:
    harness = RunHarness([reasoned(ModelTurn(calls=(call("send_email", EMAIL),))), reasoned(says("Sent."), OTHER)])
    run_id = await harness.play()
    [pending] = harness.run(run_id).pending
    await harness.resume(run_id, {pending.id: "sent"})
    await harness.new_worker().execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    harness.model.add(says())
    await harness.play("And now?")
    assert [items_of(request.messages) for request in harness.model.requests] == [[], [ITEMS], [ITEMS, OTHER]]


@pytest.mark.requirement("H1", "H2")
async def test_a_paused_reply_goes_back_as_it_came() -> None:
    harness = RunHarness([replace(reasoned(says("First, ")), finish_reason=FinishReason.PAUSED), says("then.")])
    await harness.play()
    assert items_of(harness.model.requests[1].messages) == [ITEMS]


@pytest.mark.requirement("H1")
async def test_items_are_in_no_event_audit_entry_or_trace_of_the_run() -> None:
    harness = RunHarness([reasoned(asks("mcp__s__read")), says()], servers=READ)
    run_id = await harness.play()
    shown = [
        harness.events(run_id),
        list(harness.state.audit.values()),
        harness.tracer.generations,
        harness.ledger(run_id),
    ]
    assert all(repr(kind) != "[]" for kind in shown)
    assert "planted-reasoning" not in repr(shown)


@pytest.mark.requirement("H1")
async def test_items_that_are_too_large_are_dropped_with_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    large = replace(ITEMS, data=b"[" + b" " * MAX_ITEMS_BYTES + b"]")
    harness = RunHarness([reasoned(asks("mcp__s__read"), large), says()], servers=READ)
    with caplog.at_level(logging.WARNING):
        run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert items_of(harness.model.requests[1].messages) == []
    [line] = [record for record in caplog.records if "provider items too large" in record.message]
    assert line.__dict__["bytes"] == large.size
    assert line.__dict__["run_id"] == run_id


@pytest.mark.requirement("H1", "A7")
async def test_a_message_without_the_calls_of_its_reply_has_no_items() -> None:
    closing = reasoned(asks("mcp__s__read", text="I stop here."), OTHER)
    harness = RunHarness([reasoned(asks("mcp__s__read")), closing], servers=READ, limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.INCOMPLETE
    harness.model.add(says())
    await harness.play("Go on.")
    assert items_of(harness.model.requests[2].messages) == [ITEMS]


@pytest.mark.requirement("H1", "C4")
async def test_a_message_with_a_canary_token_has_no_items() -> None:
    harness = RunHarness([reasoned(says("The word is Nightingale-4471.")), says()])
    await harness.play()
    harness.change_agent(canary_tokens=(CanaryToken(id="vault", secret="Nightingale-4471"),))
    await harness.play("And now?")
    [_, reply, *_] = harness.model.requests[1].messages
    assert (reply.text, reply.items) == ("The word is [canary:vault].", None)
