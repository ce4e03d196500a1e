"""Runs under policy: what the model is shown, what is blocked, cut or counted, and when the run
ends for it."""

import json

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import ContentBlock, ContentKind, McpReply
from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject
from domain.policy.rules import OnBlock, ToolPolicies, ToolRule, Verdict
from domain.runs.events import RunEventType
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.run import RunStatus
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

LIST: JsonObject = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}, "path": {"type": "string"}, "force": {"type": "boolean"}},
}


async def entries(invocation: Invocation) -> McpReply:
    wanted = invocation.arguments.get("limit", 6)
    assert isinstance(wanted, int)
    return text_reply(json.dumps({"entries": list(range(wanted)), "more": False}))


def a_harness(*turns: ModelTurn, search_threshold: int = 60, **rules: ToolRule) -> RunHarness:
    """An agent with the tools `list` and `drop` of server `s`, and rules for them by their short
    names."""
    tools = {
        "list": InMemoryTool(answer=entries, description="Lists entries.", input_schema=LIST),
        "drop": InMemoryTool(answer=text_reply("dropped"), description="Drops a table."),
    }
    harness = RunHarness([*turns], servers={"s": InMemoryMcpServer(tools=tools)}, search_threshold=search_threshold)
    harness.change_agent(tool_policies=policies(**rules))
    return harness


def policies(**rules: ToolRule) -> ToolPolicies:
    return ToolPolicies(rules=tuple((f"mcp__s__{name}", rule) for name, rule in rules.items()))


def lists(**arguments: object) -> ModelTurn:
    return ModelTurn(calls=(call("mcp__s__list", arguments),))  # type: ignore[arg-type]  # JSON by keyword


DROPS = asks("mcp__s__drop")
DENY = ToolRule(decision=Verdict.DENY)


@pytest.mark.requirement("C2")
async def test_a_denied_tool_is_not_shown_and_a_call_of_it_is_blocked_and_told() -> None:
    harness = a_harness(DROPS, says("Then not."), drop=DENY)
    run_id = await harness.play()

    assert harness.run(run_id).status is RunStatus.COMPLETED
    shown = [tool.name for tool in harness.model.requests[0].tools]
    assert ("mcp__s__list" in shown, "mcp__s__drop" in shown) == (True, False)
    assert "mcp__s__drop" not in harness.model.requests[0].system
    assert harness.results() == [
        "The call of mcp__s__drop was blocked by policy: the tool may not be used. Go on without it."
    ]
    [blocked] = harness.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert (blocked["name"], blocked["reason"], blocked["server"]) == ("mcp__s__drop", "tool_denied", None)
    assert harness.server_calls() == []
    [entry] = [entry for entry in harness.audit(run_id) if entry.action.value == "tool.blocked"]
    assert blocked["decision"] == entry.details["decision"]
    assert entry.details["decision"] == {
        "verdict": "deny",
        "reason": "tool_denied",
        "layer": "agent",
        "pattern": "mcp__s__drop",
    }
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2", "A4")
async def test_a_tool_outside_an_allowlist_is_answered_as_if_there_were_none() -> None:
    harness = a_harness(DROPS, says())
    harness.change_organization(tool_allowlist=("mcp__s__list",))
    run_id = await harness.play()
    assert [tool.name for tool in harness.model.requests[0].tools] == ["mcp__s__list"]
    assert harness.results()[0].startswith("A tool with the name mcp__s__drop was not found.")
    assert "tool.failed" in harness.actions(run_id)


@pytest.mark.requirement("C2")
async def test_what_the_organization_denies_no_agent_allows() -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(decision=Verdict.ALLOW))
    harness.change_organization(tool_policies=policies(drop=DENY))
    run_id = await harness.play()
    assert harness.server_calls() == []
    [entry] = [entry for entry in harness.audit(run_id) if entry.action.value == "tool.blocked"]
    assert isinstance(entry.details["decision"], dict)
    assert entry.details["decision"]["layer"] == "organization"


@pytest.mark.requirement("C2")
async def test_an_overridable_rule_of_the_organization_gives_way_to_the_agents() -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(decision=Verdict.ALLOW))
    harness.change_organization(tool_policies=policies(drop=ToolRule(decision=Verdict.DENY, overridable=True)))
    await harness.play()
    assert harness.results() == ["dropped"]


@pytest.mark.requirement("C2", "C5")
async def test_a_blocked_call_that_halts_ends_the_run_and_none_of_its_siblings_is_made() -> None:
    both = ModelTurn(text="I drop it.", calls=(call("mcp__s__list"), call("mcp__s__drop")))
    harness = a_harness(both, drop=ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT))
    run_id = await harness.play()

    run = harness.run(run_id)
    assert (run.status, run.output) == (RunStatus.HALTED, "I drop it.")
    assert harness.server_calls() == []
    listed, dropped = harness.ledger(run_id)
    assert listed.result is not None
    assert dropped.result is not None
    assert (listed.result.error_code, dropped.result.error_code) == ("run_halted", "tool_denied")
    assert harness.of_type(run_id, RunEventType.RUN_HALTED) == [{"reason": "policy", "tool_call_id": dropped.id}]
    assert harness.types(run_id)[-1] == "run.halted"
    [halted] = [entry for entry in harness.audit(run_id) if entry.action.value == "session.halted"]
    assert (halted.details["reason"], halted.details["tool_call_id"]) == ("policy", dropped.id)
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("rule", "arguments", "code", "named"),
    [
        (ToolRule(denied_params=("force",)), {"force": False}, "parameter_denied", "'force'"),
        (ToolRule(allowed_params=("limit",)), {"path": "/"}, "parameter_denied", "'path'"),
        (
            ToolRule(arguments_schema={"properties": {"path": {"pattern": "^/public/"}}}),
            {"path": "/etc"},
            "arguments_denied",
            "/path",
        ),
    ],
)
async def test_arguments_that_policy_forbids_block_the_call_with_a_sentence_that_names_them(
    rule: ToolRule, arguments: JsonObject, code: str, named: str
) -> None:
    harness = a_harness(lists(**arguments), lists(limit=1), says(), list=rule)
    run_id = await harness.play()
    [blocked] = harness.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert blocked["reason"] == code
    assert named in harness.results()[0]
    assert len(harness.server_calls()) == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2")
async def test_calls_are_counted_over_a_run_and_over_a_restart_and_refused_ones_do_not_count(
    mocker: MockerFixture,
) -> None:
    twice = ModelTurn(calls=(call("mcp__s__list", {"limit": "x"}), call("mcp__s__list", {"limit": 1})))
    lost = lists()
    harness = a_harness(twice, lists(), lost, lists(), says(), list=ToolRule(max_calls=2))
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 4)
    await harness.worker.execute(run_id)

    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert len(harness.server_calls()) == 2
    assert [call.result.error_code for call in harness.ledger(run_id) if call.result is not None] == [
        "tool_arguments_invalid",
        None,
        None,
        "max_calls_reached",
    ]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(("asked", "sent"), [(500, 3), (-1, 3), (2, 2), (0, 0)])
async def test_an_argument_that_asks_for_more_results_is_lowered(asked: int, sent: int) -> None:
    harness = a_harness(lists(limit=asked), says(), list=ToolRule(max_results=3))
    run_id = await harness.play()
    assert [recorded.call.arguments for recorded in harness.connections.calls] == [{"limit": sent}]
    assert [entry.params for entry in harness.ledger(run_id)] == [{"limit": sent}]


@pytest.mark.requirement("C2")
async def test_a_result_with_more_entries_than_allowed_is_cut_with_a_notice() -> None:
    harness = a_harness(lists(), says(), list=ToolRule(max_results=2))
    await harness.play()
    shown, notice = harness.results()[0].rsplit("\n", 1)
    assert json.loads(shown) == {"entries": [0, 1], "more": False}
    assert notice == "[4 of 6 results are missing here: policy allows 2]"


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    "reply",
    [
        McpReply(
            is_error=False,
            content=tuple(ContentBlock(kind=ContentKind.TEXT, text=f"entry {n}") for n in range(5)),
            structured={"result": [f"entry {n}" for n in range(5)]},
        ),
        McpReply(
            is_error=False,
            content=(ContentBlock(kind=ContentKind.TEXT, text=", ".join(f"entry {n}" for n in range(5))),),
            structured={"result": [f"entry {n}" for n in range(5)]},
        ),
        McpReply(is_error=False, content=(), structured=[f"entry {n}" for n in range(5)]),
    ],
)
async def test_results_are_cut_in_every_form_that_servers_give_them(reply: McpReply) -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(max_results=2))
    harness.connections.servers["s"].tools = {"drop": reply}
    await harness.play()
    assert [f"entry {n}" in harness.results()[0] for n in range(5)] == [True, True, False, False, False]
    assert harness.results()[0].endswith("[3 of 5 results are missing here: policy allows 2]")


@pytest.mark.requirement("A6")
async def test_the_text_of_a_result_is_cut_where_policy_says() -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(max_result_bytes=4))
    await harness.play()
    assert harness.results() == ["drop\n[3 of 7 bytes are missing here: the result was too long]"]


@pytest.mark.requirement("A7")
async def test_the_smallest_timeout_applies() -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(timeout_s=0.5))
    await harness.play()
    assert [recorded.call.timeout_s for recorded in harness.connections.calls] == [0.5]


@pytest.mark.requirement("C2", "A13")
async def test_denied_and_hidden_tools_are_not_found_by_a_search_nor_called_through_it() -> None:
    through = ModelTurn(calls=(call("call_tool", {"name": "mcp__s__drop"}),))
    search = ModelTurn(calls=(call("search_tools", {"query": "drops a table"}),))
    harness = a_harness(search, through, says(), search_threshold=0, drop=DENY)
    run_id = await harness.play()
    assert "mcp__s__drop" not in harness.results()[0]
    assert "blocked by policy" in harness.results()[1]
    assert harness.server_calls() == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C1")
async def test_a_change_of_the_organization_reaches_a_running_run_at_its_next_turn() -> None:
    def second(_request: object) -> ModelTurn:
        if len(harness.model.requests) == 1:
            harness.change_organization(tool_policies=policies(drop=DENY), limits=LimitSettings(max_turns=2))
            return lists()
        return DROPS

    harness = a_harness()
    harness.model = type(harness.model)(second)
    harness.worker = harness.new_worker()
    run_id = await harness.play()
    run = harness.run(run_id)
    assert harness.server_calls() == ["list"]
    assert (run.status, run.incomplete_reason) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS)


@pytest.mark.requirement("C1")
async def test_a_run_may_ask_for_the_organizations_models_and_for_no_others() -> None:
    harness = a_harness(says(), says())
    harness.change_organization(models=("scripted:other.yaml",))
    await harness.warm_up()
    run_id = await harness.start(model="scripted:other.yaml")
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.model.requests[0].model == "scripted:other.yaml"
    with pytest.raises(ServiceError) as refused:
        await harness.start(model="scripted:third.yaml")
    assert (refused.value.kind, refused.value.code) == (ErrorKind.FORBIDDEN, "model_not_allowed")


@pytest.mark.requirement("E3")
async def test_policy_may_say_that_a_call_can_be_sent_again() -> None:
    harness = a_harness(DROPS, says(), drop=ToolRule(idempotent=True))
    run_id = await harness.play()
    assert [entry.repeatable for entry in harness.ledger(run_id)] == [True]
    harness = a_harness(DROPS, says())
    run_id = await harness.play()
    assert [entry.repeatable for entry in harness.ledger(run_id)] == [False]
