"""Runs under policy: what the model is shown, what is blocked, cut or counted, and when the run ends for it."""

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
from tests.unit.application.runs.harness import RunHarness, assert_consistent

LIST: JsonObject = {
    "type": "object",
    "properties": {"limit": {"type": "integer"}, "path": {"type": "string"}, "force": {"type": "boolean"}},
}


async def entries(invocation: Invocation) -> McpReply:
    wanted = invocation.arguments.get("limit", 6)
    assert isinstance(wanted, int)
    return text_reply(json.dumps({"entries": list(range(wanted)), "more": False}))


def a_house(*turns: ModelTurn, search_threshold: int = 60, **rules: ToolRule) -> RunHarness:
    """An agent with the tools `list` and `drop` of server `s`, and rules for them by their short names."""
    tools = {
        "list": InMemoryTool(answer=entries, description="Lists entries.", input_schema=LIST),
        "drop": InMemoryTool(answer=text_reply("dropped"), description="Drops a table."),
    }
    house = RunHarness([*turns], servers={"s": InMemoryMcpServer(tools=tools)}, search_threshold=search_threshold)
    house.change_agent(tool_policies=policies(**rules))
    return house


def policies(**rules: ToolRule) -> ToolPolicies:
    return ToolPolicies(rules=tuple((f"mcp__s__{name}", rule) for name, rule in rules.items()))


def lists(**arguments: object) -> ModelTurn:
    return ModelTurn(calls=(call("mcp__s__list", arguments),))  # type: ignore[arg-type]  # JSON by keyword


DROPS = asks("mcp__s__drop")
DENY = ToolRule(decision=Verdict.DENY)


@pytest.mark.requirement("C2")
async def test_a_denied_tool_is_not_shown_and_a_call_of_it_is_blocked_and_told() -> None:
    house = a_house(DROPS, says("Then not."), drop=DENY)
    run_id = await house.play()

    assert house.run(run_id).status is RunStatus.COMPLETED
    shown = [tool.name for tool in house.model.requests[0].tools]
    assert ("mcp__s__list" in shown, "mcp__s__drop" in shown) == (True, False)
    assert "mcp__s__drop" not in house.model.requests[0].system
    assert house.results() == [
        "The call of mcp__s__drop was blocked by policy: the tool may not be used. Go on without it."
    ]
    [blocked] = house.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert (blocked["name"], blocked["reason"], blocked["server"]) == ("mcp__s__drop", "tool_denied", None)
    assert house.server_calls() == []
    [entry] = [entry for entry in house.audit(run_id) if entry.action.value == "tool.blocked"]
    assert blocked["decision"] == entry.details["decision"]
    assert entry.details["decision"] == {
        "verdict": "deny",
        "reason": "tool_denied",
        "layer": "agent",
        "pattern": "mcp__s__drop",
    }
    assert_consistent(house, run_id)


@pytest.mark.requirement("C2", "A4")
async def test_a_tool_outside_an_allowlist_is_answered_as_if_there_were_none() -> None:
    house = a_house(DROPS, says())
    house.change_organization(tool_allowlist=("mcp__s__list",))
    run_id = await house.play()
    assert [tool.name for tool in house.model.requests[0].tools] == ["mcp__s__list"]
    assert house.results()[0].startswith("A tool with the name mcp__s__drop was not found.")
    assert "tool.failed" in house.actions(run_id)


@pytest.mark.requirement("C2")
async def test_what_the_organization_denies_no_agent_allows() -> None:
    house = a_house(DROPS, says(), drop=ToolRule(decision=Verdict.ALLOW))
    house.change_organization(tool_policies=policies(drop=DENY))
    run_id = await house.play()
    assert house.server_calls() == []
    [entry] = [entry for entry in house.audit(run_id) if entry.action.value == "tool.blocked"]
    assert isinstance(entry.details["decision"], dict)
    assert entry.details["decision"]["layer"] == "organization"


@pytest.mark.requirement("C2")
async def test_an_overridable_rule_of_the_organization_gives_way_to_the_agents() -> None:
    house = a_house(DROPS, says(), drop=ToolRule(decision=Verdict.ALLOW))
    house.change_organization(tool_policies=policies(drop=ToolRule(decision=Verdict.DENY, overridable=True)))
    await house.play()
    assert house.results() == ["dropped"]


@pytest.mark.requirement("C2", "C5")
async def test_a_blocked_call_that_halts_ends_the_run_and_none_of_its_siblings_is_made() -> None:
    both = ModelTurn(text="I drop it.", calls=(call("mcp__s__list"), call("mcp__s__drop")))
    house = a_house(both, drop=ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT))
    run_id = await house.play()

    run = house.run(run_id)
    assert (run.status, run.output) == (RunStatus.HALTED, "I drop it.")
    assert house.server_calls() == []
    listed, dropped = house.ledger(run_id)
    assert listed.result is not None
    assert dropped.result is not None
    assert (listed.result.error_code, dropped.result.error_code) == ("run_halted", "tool_denied")
    assert house.of_type(run_id, RunEventType.RUN_HALTED) == [{"reason": "policy", "tool_call_id": dropped.id}]
    assert house.types(run_id)[-1] == "run.halted"
    [halted] = [entry for entry in house.audit(run_id) if entry.action.value == "session.halted"]
    assert (halted.details["reason"], halted.details["tool_call_id"]) == ("policy", dropped.id)
    assert_consistent(house, run_id)


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
    house = a_house(lists(**arguments), lists(limit=1), says(), list=rule)
    run_id = await house.play()
    [blocked] = house.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert blocked["reason"] == code
    assert named in house.results()[0]
    assert len(house.server_calls()) == 1
    assert_consistent(house, run_id)


@pytest.mark.requirement("C2")
async def test_calls_are_counted_over_a_run_and_over_a_restart_and_refused_ones_do_not_count(
    mocker: MockerFixture,
) -> None:
    twice = ModelTurn(calls=(call("mcp__s__list", {"limit": "x"}), call("mcp__s__list", {"limit": 1})))
    lost = lists()
    house = a_house(twice, lists(), lost, lists(), says(), list=ToolRule(max_calls=2))
    await house.warm_up()
    run_id = await house.start()
    await crash_after(house, mocker, 4)
    await house.worker.execute(run_id)

    assert house.run(run_id).status is RunStatus.COMPLETED
    assert len(house.server_calls()) == 2
    assert [call.result.error_code for call in house.ledger(run_id) if call.result is not None] == [
        "tool_arguments_invalid",
        None,
        None,
        "max_calls_reached",
    ]
    assert_consistent(house, run_id)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(("asked", "sent"), [(500, 3), (-1, 3), (2, 2), (0, 0)])
async def test_an_argument_that_asks_for_more_results_is_lowered(asked: int, sent: int) -> None:
    house = a_house(lists(limit=asked), says(), list=ToolRule(max_results=3))
    run_id = await house.play()
    assert [recorded.call.arguments for recorded in house.connections.calls] == [{"limit": sent}]
    assert [entry.params for entry in house.ledger(run_id)] == [{"limit": sent}]


@pytest.mark.requirement("C2")
async def test_a_result_with_more_entries_than_allowed_is_cut_with_a_notice() -> None:
    house = a_house(lists(), says(), list=ToolRule(max_results=2))
    await house.play()
    shown, notice = house.results()[0].rsplit("\n", 1)
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
    house = a_house(DROPS, says(), drop=ToolRule(max_results=2))
    house.connections.servers["s"].tools = {"drop": reply}
    await house.play()
    assert [f"entry {n}" in house.results()[0] for n in range(5)] == [True, True, False, False, False]
    assert house.results()[0].endswith("[3 of 5 results are missing here: policy allows 2]")


@pytest.mark.requirement("A6")
async def test_the_text_of_a_result_is_cut_where_policy_says() -> None:
    house = a_house(DROPS, says(), drop=ToolRule(max_result_bytes=4))
    await house.play()
    assert house.results() == ["drop\n[3 of 7 bytes are missing here: the result was too long]"]


@pytest.mark.requirement("A7")
async def test_the_smallest_timeout_applies() -> None:
    house = a_house(DROPS, says(), drop=ToolRule(timeout_s=0.5))
    await house.play()
    assert [recorded.call.timeout_s for recorded in house.connections.calls] == [0.5]


@pytest.mark.requirement("C2", "A13")
async def test_denied_and_hidden_tools_are_not_found_by_a_search_nor_called_through_it() -> None:
    through = ModelTurn(calls=(call("call_tool", {"name": "mcp__s__drop"}),))
    search = ModelTurn(calls=(call("search_tools", {"query": "drops a table"}),))
    house = a_house(search, through, says(), search_threshold=0, drop=DENY)
    run_id = await house.play()
    assert "mcp__s__drop" not in house.results()[0]
    assert "blocked by policy" in house.results()[1]
    assert house.server_calls() == []
    assert_consistent(house, run_id)


@pytest.mark.requirement("C1")
async def test_a_change_of_the_organization_reaches_a_running_run_at_its_next_turn() -> None:
    def second(_request: object) -> ModelTurn:
        if len(house.model.requests) == 1:
            house.change_organization(tool_policies=policies(drop=DENY), limits=LimitSettings(max_turns=2))
            return lists()
        return DROPS

    house = a_house()
    house.model = type(house.model)(second)
    house.worker = house.new_worker()
    run_id = await house.play()
    run = house.run(run_id)
    assert house.server_calls() == ["list"]
    assert (run.status, run.incomplete_reason) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS)


@pytest.mark.requirement("C1")
async def test_a_run_may_ask_for_the_organizations_models_and_for_no_others() -> None:
    house = a_house(says(), says())
    house.change_organization(models=("scripted:other.yaml",))
    await house.warm_up()
    run_id = await house.start(model="scripted:other.yaml")
    await house.worker.execute(run_id)
    assert house.run(run_id).status is RunStatus.COMPLETED
    assert house.model.requests[0].model == "scripted:other.yaml"
    with pytest.raises(ServiceError) as refused:
        await house.start(model="scripted:third.yaml")
    assert (refused.value.kind, refused.value.code) == (ErrorKind.FORBIDDEN, "model_not_allowed")


@pytest.mark.requirement("E3")
async def test_policy_may_say_that_a_call_can_be_sent_again() -> None:
    house = a_house(DROPS, says(), drop=ToolRule(idempotent=True))
    run_id = await house.play()
    assert [entry.repeatable for entry in house.ledger(run_id)] == [True]
    house = a_house(DROPS, says())
    run_id = await house.play()
    assert [entry.repeatable for entry in house.ledger(run_id)] == [False]
