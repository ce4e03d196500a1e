"""Scripted models: which turn answers, what it refers to, and what is refused."""

import os
from pathlib import Path

import pytest

from application.models.ports import ModelError, ModelReply, ModelRequest, RequestedCall, TextDelta, ToolChoice
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.message import Message
from infrastructure.llm.scripted import SHIPPED_SCRIPTS, ScriptedModels
from tests.builders import a_message, a_run_id
from tests.unit.llm.model_requests import (
    a_request,
    a_result,
    a_tool_message,
    a_use,
    a_user_message,
    all_events,
    an_assistant_message,
    reply_of,
)


class Scripts:
    """A folder of scripts and the models over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slept: list[float] = []
        self.models = ScriptedModels([folder], sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def write(self, text: str, name: str = "s.yaml") -> None:
        (self.folder / name).write_text(text)

    async def ask(self, *messages: Message, turn: int = 1, choice: ToolChoice = ToolChoice.AUTO) -> ModelReply:
        request = a_request("scripted:s.yaml", turn=turn, messages=messages or None, tool_choice=choice)
        return await reply_of(self.models.stream(request))

    async def refusal(self, *messages: Message, turn: int = 1) -> ModelError:
        with pytest.raises(ModelError) as raised:
            await self.ask(*messages, turn=turn)
        return raised.value


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def after_results(*results: tuple[str, str], text: str = "What time is it?") -> tuple[Message, ...]:
    """A user message, then one turn in which each named tool answered."""
    uses = [a_use(index, name=name) for index, (name, _) in enumerate(results)]
    answers = [a_result(use, answer) for use, (_, answer) in zip(uses, results, strict=True)]
    return (a_user_message(text), an_assistant_message(*uses), a_tool_message(*answers))


async def test_turns_answer_in_their_order_with_text_calls_and_usage(scripts: Scripts) -> None:
    scripts.write(
        """
        usage: {input_tokens: 5}
        turns:
          - text: Let me look.
            calls:
              - {tool: mcp__files__echo, arguments: {text: hi, deep: {n: 1, list: [true, null, 2.5]}}}
              - {tool: other}
            usage: {input_tokens: 100, output_tokens: 20, cached_tokens: 80}
          - text: Done.
        """
    )
    assert await scripts.ask(turn=1) == ModelReply(
        model="scripted:s.yaml",
        text="Let me look.",
        calls=(
            RequestedCall(
                name="mcp__files__echo", arguments={"text": "hi", "deep": {"n": 1, "list": [True, None, 2.5]}}
            ),
            RequestedCall(name="other", arguments={}),
        ),
        usage=ModelUsage(input_tokens=100, output_tokens=20, cached_tokens=80),
        finish_reason=FinishReason.TOOL_CALLS,
    )
    second = await scripts.ask(turn=2)
    assert (second.text, second.calls, second.finish_reason) == ("Done.", (), "stop")
    assert second.usage == ModelUsage(input_tokens=5)


@pytest.mark.requirement("A7")
async def test_when_tools_may_not_be_called_only_the_closing_text_is_said(scripts: Scripts) -> None:
    scripts.write("turns: [{calls: [{tool: echo}]}]\nclosing: 'So far: {{ results.last }}'")
    closing = await scripts.ask(*after_results(("echo", "half")), turn=1, choice=ToolChoice.NONE)
    assert (closing.text, closing.calls) == ("So far: half", ())
    scripts.write("turns: [{when: {}, calls: [{tool: echo}]}]")
    default = await scripts.ask(turn=9, choice=ToolChoice.NONE)
    assert default.text
    assert default.calls == ()


async def test_a_script_that_is_over_closes(scripts: Scripts) -> None:
    scripts.write("turns: [{text: one}]\nclosing: The end.")
    assert (await scripts.ask(turn=2)).text == "The end."


async def test_conditions_come_before_the_order(scripts: Scripts) -> None:
    scripts.write(
        """
        turns:
          - {text: first}
          - {text: on the third, when: {turn: 3}}
          - {text: it failed, when: {last_result: "failed|error"}}
          - {text: about cats, when: {user: "\\\\bcats?\\\\b", has_results: true}}
          - {text: second}
        """
    )
    assert (await scripts.ask(turn=1)).text == "first"
    assert (await scripts.ask(turn=2)).text == "second"
    assert (await scripts.ask(turn=3)).text == "on the third"
    assert (await scripts.ask(*after_results(("t", "It FAILED badly")), turn=2)).text == "it failed"
    assert (await scripts.ask(*after_results(("t", "fine"), text="My Cat?"), turn=2)).text == "about cats"
    assert (await scripts.ask(a_user_message("My cat?"), turn=2)).text == "second"


async def test_an_empty_condition_always_holds(scripts: Scripts) -> None:
    scripts.write("turns: [{when: {}, calls: [{tool: again}]}]")
    assert [(await scripts.ask(turn=turn)).calls[0].name for turn in (1, 7, 50)] == ["again"] * 3


async def test_one_script_serves_several_kinds_of_run(scripts: Scripts) -> None:
    scripts.write(
        """
        runs:
          - {user: weather, turns: [{text: It rains.}]}
          - {user: time, turns: [{text: It is noon.}]}
        turns: [{text: I do not know.}]
        """
    )
    asked = ["What WEATHER?", "What time is it?", "Who are you?"]
    assert [(await scripts.ask(a_user_message(text))).text for text in asked] == [
        "It rains.",
        "It is noon.",
        "I do not know.",
    ]


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("user", "What time is it?"),
        ("results.last", '{"items": [{"id": 7, "a/b": "x"}], "ok": true}'),
        ("results.first_tool", "plain: v1.25 (new)"),
        ("results.last /items/0/id", 7),
        ("results.last/ok", True),
        ("results.last /items/0/a~1b", "x"),
        ("results.last /items", [{"id": 7, "a/b": "x"}]),
        ("results.first_tool | match 'v([0-9.]+)'", "1.25"),
        ('results.first_tool | match "v[0-9.]+"', "v1.25"),
        ("results.first_tool | head 5", "plain"),
        ("results.first_tool | match 'v([0-9.]+)' | head 1", "1"),
        ("results.unknown | default 'none'", "none"),
        ("results.last /items/9/id | default 'none'", "none"),
        ("results.first_tool /a | default 'none'", "none"),
        ("results.first_tool | match 'zzz' | default ''", ""),
    ],
)
async def test_references_find_what_they_name(scripts: Scripts, reference: str, value: object) -> None:
    quoted = reference.replace("'", "''")
    scripts.write(
        f"turns: [{{text: 'got {{{{ {quoted} }}}}!', calls: [{{tool: t, arguments: {{x: ['{{{{ {quoted} }}}}']}}}}]}}]"
    )
    history = after_results(
        ("first_tool", "plain: v1.25 (new)"), ("second-tool", '{"items": [{"id": 7, "a/b": "x"}], "ok": true}')
    )
    reply = await scripts.ask(*history)
    assert reply.calls[0].arguments == {"x": [value]}
    assert reply.text.startswith("got ")
    if isinstance(value, str):
        assert reply.text == f"got {value}!"


async def test_results_of_other_runs_are_not_seen(scripts: Scripts) -> None:
    scripts.write("turns: [{text: \"{{ results.last | default 'nothing yet' }}\"}]")
    use = a_use()
    earlier = tuple(
        a_message(number, run_id=a_run_id(99), role=message.role, content=message.content)
        for number, message in enumerate((a_user_message(), an_assistant_message(use), a_tool_message(a_result(use))))
    )
    assert (await scripts.ask(*earlier, a_user_message(number=9))).text == "nothing yet"


async def test_a_reference_that_finds_nothing_names_itself_and_its_turn(scripts: Scripts) -> None:
    scripts.write("turns: [{text: '{{ results.clock /time }}'}]")
    error = await scripts.refusal()
    assert (error.code, error.retryable) == ("model_rejected", False)
    assert "results.clock /time" in error.detail
    assert "turn 1" in error.detail


@pytest.mark.requirement("A9")
async def test_malformed_arguments_can_be_played(scripts: Scripts) -> None:
    scripts.write("turns: [{calls: [{tool: echo, malformed: '{\"text\": '}]}]")
    (call,) = (await scripts.ask()).calls
    assert call == RequestedCall(name="echo", arguments={}, malformed='{"text": ')


async def test_text_comes_in_pieces_with_the_pause_asked_for(scripts: Scripts) -> None:
    scripts.write("{delay_ms: 250, chunk_chars: 4, turns: [{text: Hello you}]}")
    events = await all_events(scripts.models.stream(a_request("scripted:s.yaml")))
    assert events[:-1] == [TextDelta(text="Hell"), TextDelta(text="o yo"), TextDelta(text="u")]
    assert scripts.slept == [0.25] * 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "needs a list of turns"),
        ("- a", "needs a list of turns"),
        ("turns: []", "needs a list of turns"),
        ("turns: [", "not YAML at line 1"),
        ("turns: [{txt: hi}]", "turns.0.txt"),
        ("turns: [{text: 5}]", "turns.0.text"),
        ("turns: [{text: '{{ 1 + 1 }}'}]", "not a reference"),
        ("turns: [{text: '{{ results.last | exec \"x\" }}'}]", "not a reference"),
        ("turns: [{calls: [{tool: t, arguments: {a: ['{{ os }}']}}]}]", "turns.0.calls.0"),
        ("turns: [{when: {user: '('}}]", "turns.0.when.user"),
        ("turns: [{text: \"{{ user | match '(' }}\"}]", "not a regular expression"),
        ("turns: [{text: \"{{ user | head 'x' }}\"}]", "number of characters"),
        ("turns: [{text: hi}]\nchunk_chars: 0", "chunk_chars"),
        ("turns: [{usage: {input_tokens: -1}}]", "input_tokens"),
        ("turns: !!python/object/apply:os.getcwd []", "not YAML"),
        ("x: " + "[" * 5000, "not YAML"),
    ],
)
def test_a_wrong_script_is_refused_with_the_place_and_the_reason(scripts: Scripts, text: str, says: str) -> None:
    scripts.write(text)
    problem = scripts.models.problem_with("s.yaml")
    assert problem is not None
    assert problem.startswith("s.yaml")
    assert says in problem


def test_a_script_that_is_too_large_or_not_text_is_refused(scripts: Scripts) -> None:
    scripts.write("# " + "x" * 1024 * 1024)
    assert "larger" in (scripts.models.problem_with("s.yaml") or "")
    (scripts.folder / "s.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in (scripts.models.problem_with("s.yaml") or "")


@pytest.mark.parametrize(
    "name",
    [
        "../secret.yaml",
        "a/../../secret.yaml",
        "/etc/secret.yaml",
        "..\\secret.yaml",
        "link.yaml",
        "linked/secret.yaml",
        "secret.txt",
        "",
        "s.yaml\0.yaml",
        "missing.yaml",
        "folder.yaml",
    ],
)
def test_nothing_outside_of_the_folders_is_read(tmp_path: Path, name: str) -> None:
    inside, outside = tmp_path / "scripts", tmp_path / "outside"
    for folder in (inside, outside, inside / "folder.yaml"):
        folder.mkdir()
    for place in (outside / "secret.yaml", tmp_path / "secret.yaml"):
        place.write_text("turns: [{text: secret}]")
    os.symlink(outside / "secret.yaml", inside / "link.yaml")
    os.symlink(outside, inside / "linked")
    problem = ScriptedModels([inside]).problem_with(name)
    assert problem is not None
    assert str(tmp_path) not in problem


async def test_earlier_folders_come_first_and_may_have_folders_inside(tmp_path: Path) -> None:
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    (mine / "team").mkdir(parents=True)
    shipped.mkdir()
    (mine / "team" / "a.yml").write_text("turns: [{text: mine}]")
    (mine / "b.yaml").write_text("turns: [{text: mine}]")
    (shipped / "b.yaml").write_text("turns: [{text: shipped}]")
    (shipped / "c.yaml").write_text("turns: [{text: shipped}]")
    models = ScriptedModels([mine, shipped, tmp_path / "not there"])
    said = [
        (await reply_of(models.stream(a_request(f"scripted:{name}")))).text
        for name in ("team/a.yml", "b.yaml", "c.yaml")
    ]
    assert said == ["mine", "mine", "shipped"]


async def test_a_changed_script_is_read_again_and_a_removed_one_is_gone(scripts: Scripts) -> None:
    scripts.write("turns: [{text: old}]")
    assert (await scripts.ask()).text == "old"
    scripts.write("turns: [{text: quite new}]")
    assert (await scripts.ask()).text == "quite new"
    (scripts.folder / "s.yaml").unlink()
    assert (await scripts.refusal()).code == "model_rejected"


@pytest.mark.parametrize("path", sorted(SHIPPED_SCRIPTS.rglob("*.yaml")), ids=lambda path: path.name)
def test_shipped_scripts_are_right(path: Path) -> None:
    name = path.relative_to(SHIPPED_SCRIPTS).as_posix()
    assert ScriptedModels([SHIPPED_SCRIPTS]).problem_with(name) is None


async def test_hello_repeats_what_it_was_told() -> None:
    request: ModelRequest = a_request("scripted:hello.yaml", messages=(a_user_message("Good morning"),))
    assert "You said: Good morning" in (await reply_of(ScriptedModels([SHIPPED_SCRIPTS]).stream(request))).text
