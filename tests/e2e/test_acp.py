"""An agent in an editor: the Python library of the Agent Client Protocol starts `dragoman acp` and
speaks with it, over a real service."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.processes import until
from tests.e2e.service import DRAGOMAN, ROOT, Json, Service, a_turn, environment, parts, serving

pytestmark = pytest.mark.requirement("X8")
acp = pytest.importorskip("acp")

NOTE, LOOK, HELD = "mcp__watched__note", "mcp__watched__look", "mcp__watched__held_look"
ASKING = {NOTE: {"decision": "require_approval"}}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


@dataclass(slots=True)
class Editor:
    """A client that notes what a session shows, and answers requests for permission as told; None
    never answers."""

    option: str | None = "allow"
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        async with self.changed:
            self.updates.append(update)
            self.changed.notify_all()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        async with self.changed:
            self.asked.append(tool_call)
            self.changed.notify_all()
        if self.option is None:
            await asyncio.get_running_loop().create_future()
        assert [option.option_id for option in options] == ["allow", "reject"]
        outcome = acp.schema.AllowedOutcome(option_id=self.option, outcome="selected")
        return acp.RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn: Any) -> None: ...

    async def until(self, is_so: Any) -> None:
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(is_so), 60)

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one.content.text for one in self.updates if one.session_update == kind)

    def calls(self) -> dict[str, list[str]]:
        """The states of each call, by its title."""
        titles: dict[str, str] = {}
        states: dict[str, list[str]] = {}
        for one in self.updates:
            if one.session_update == "tool_call":
                titles[one.tool_call_id] = one.title
            if one.session_update in ("tool_call", "tool_call_update"):
                states.setdefault(titles[one.tool_call_id], []).append(one.status)
        return states


@asynccontextmanager
async def editing(service: Service, editor: Editor, agent: str = "helper") -> AsyncGenerator[Any]:
    """The agent's side as the editor has it, after the handshake."""
    started = acp.spawn_agent_process(
        editor,
        *DRAGOMAN,
        "acp",
        "--agent",
        agent,
        env=environment(service.home, DRAGOMAN_URL=service.url, DRAGOMAN_API_KEY=service.key),
        cwd=ROOT,
        transport_kwargs={"shutdown_timeout": 60},
    )
    async with started as (agent_side, _):
        hello = await agent_side.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert hello.protocol_version == 1
        assert hello.agent_capabilities.load_session
        yield agent_side


def a_helper(service: Service, *turns: Json, **settings: Any) -> Path:
    log = service.watched_server("watched", trusted=True)
    script = {name: settings.pop(name) for name in ("delay_ms", "chunk_chars") if name in settings}
    model = service.script("helping", *turns, **script)
    service.agent("helper", model, mcp_servers=["watched"], **settings)
    return log


async def test_an_editor_speaks_with_an_agent_and_loads_the_conversation_again(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        a_helper(service, a_turn("I look.", (LOOK, {"text": "here"})), a_turn("Done."))
        editor, later = Editor(), Editor()
        async with editing(service, editor) as agent:
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            blocks = [
                acp.text_block("Look at this."),
                acp.image_block(PNG, "image/png"),
                acp.resource_link_block("main.py", "file:///main.py"),
                acp.text_block("Now."),
            ]
            ended = await agent.prompt(session_id=session.session_id, prompt=blocks)
        assert ended.stop_reason == "end_turn"
        assert editor.said() == "I look.Done."
        assert editor.calls() == {LOOK: ["pending", "in_progress", "completed"]}
        (begun,) = [one for one in editor.updates if one.session_update == "tool_call"]
        assert begun.raw_input == {"text": "here"}
        (result,) = [one for one in editor.updates if getattr(one, "status", "") == "completed"]
        assert result.content[0].content.text == "look says here"
        (run,) = service.call("GET", "/runs")["data"]
        assert [part["type"] for part in run["input"]] == ["text", "image", "text", "text"]

        async with editing(service, later) as agent:
            await agent.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            assert later.said("user_message_chunk") == "Look at this.[image/png][main.py](file:///main.py)Now."
            assert later.said() == "I look.Done."
            assert later.calls() == {LOOK: ["pending", "completed"]}
            with pytest.raises(acp.RequestError, match="There is no session"):
                await agent.load_session(cwd=str(tmp_path), session_id="thr_0123", mcp_servers=[])


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("option", "state"), [("allow", "completed"), ("reject", "failed")])
async def test_a_call_that_requires_approval_is_allowed_or_rejected_in_the_editor(
    tmp_path: Path, option: str, state: str
) -> None:
    with serving(tmp_path / "home") as service:
        log = a_helper(service, a_turn("", (NOTE, {"text": "this"})), a_turn("Done."), tool_policies=ASKING)
        editor = Editor(option=option)
        async with editing(service, editor) as agent:
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Note this.")])
        assert (ended.stop_reason, editor.said()) == ("end_turn", "Done.")
        (asked,) = editor.asked
        assert (asked.title, asked.raw_input) == (NOTE, {"text": "this"})
        assert editor.calls()[NOTE][-1] == state
        assert log.read_text().count("called note") == (1 if option == "allow" else 0)


@pytest.mark.parametrize("waits_for", ["permission", "tool"])
async def test_a_cancelled_prompt_cancels_its_run(tmp_path: Path, waits_for: str) -> None:
    with serving(tmp_path / "home") as service:
        call = (NOTE, {"text": "x"}) if waits_for == "permission" else (HELD, {"gate": str(tmp_path / "gate")})
        a_helper(service, a_turn("", call), a_turn("Done."), tool_policies=ASKING)
        editor = Editor(option=None)
        async with editing(service, editor) as agent:
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            prompt = agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Go.")])
            prompting = asyncio.create_task(prompt)
            await editor.until(lambda: editor.asked or "in_progress" in editor.calls().get(HELD, []))
            with pytest.raises(acp.RequestError, match="a prompt under way"):
                await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("And?")])
            await agent.cancel(session_id=session.session_id)
            assert (await asyncio.wait_for(prompting, 60)).stop_reason == "cancelled"
        (run,) = service.call("GET", "/runs")["data"]
        assert run["status"] == "cancelled"


@pytest.mark.requirement("E4")
async def test_a_prompt_ends_after_the_service_was_killed_in_its_middle_and_started_again(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    editor = Editor()
    with serving(tmp_path / "home") as service:
        port = str(urlsplit(service.url).port)
        turns = a_turn("I look.", (HELD, {"text": "x", "gate": str(gate)})), a_turn("All is well.")
        log = a_helper(service, *turns, chunk_chars=4)
        async with editing(service, editor) as agent:
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            prompt = agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Go.")])
            prompting = asyncio.create_task(prompt)
            await asyncio.to_thread(
                until, lambda: log.exists() and "called held_look" in log.read_text(), what="a call"
            )
            await editor.until(lambda: "in_progress" in editor.calls().get(HELD, []))
            await asyncio.to_thread(service.stop, signal.SIGKILL)
            gate.touch()
            with serving(tmp_path / "home", "--port", port) as again:
                ended = await asyncio.wait_for(prompting, 120)
                (run,) = again.call("GET", "/runs")["data"]
                messages = again.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
    assert ended.stop_reason == "end_turn"
    assert editor.said() == "I look.All is well."
    assert editor.calls()[HELD][-1] == "completed"
    assert len(parts(messages, "tool_result")) == 1


@pytest.mark.parametrize("way", ["resume_session", "load_session"])
async def test_a_later_session_finishes_what_waits_before_its_own_prompt(tmp_path: Path, way: str) -> None:
    with serving(tmp_path / "home") as service:
        a_helper(service, a_turn("", (NOTE, {"text": "x"})), a_turn("Noted."), tool_policies=ASKING)
        leaving, staying = Editor(option=None), Editor()
        async with editing(service, leaving) as agent:
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            prompt = agent.prompt(session_id=session.session_id, prompt=[acp.text_block("Note x.")])
            prompting = asyncio.create_task(prompt)
            await leaving.until(lambda: leaving.asked)
            prompting.cancel()
        async with editing(service, staying) as agent:
            await getattr(agent, way)(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("And?")])
        assert ended.stop_reason == "end_turn"
        first, second = [asked.tool_call_id for asked in staying.asked]
        assert first == leaving.asked[0].tool_call_id != second
        assert staying.said() == "Noted.Noted."
        shown = [one.tool_call_id for one in staying.updates if one.session_update == "tool_call"]
        assert shown == [first, second]
        runs = service.call("GET", "/runs")["data"]
        assert [run["status"] for run in runs] == ["completed", "completed"]
