"""`dragoman chat`: a conversation in the terminal, with decisions about calls in between."""

import re
from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AGENTS, THREADS
from interfaces.cli.attaching import input_with, require_readable
from interfaces.cli.failures import INTERRUPTED, CommandFailure
from interfaces.cli.pending_calls import elicited_answer, json_object, tool_result
from interfaces.cli.session import Session, session_of
from interfaces.cli.transcript import Part, call_text, pending_question
from interfaces.http.agents.views import AgentView
from interfaces.http.runs.views import RunView

_HELP = "/attach FILE adds a file to the next message; /quit or Ctrl-D ends the chat; Ctrl-C cancels a run."
_ATTACH = "/attach "
_QUIT = ("/quit", "/exit", "/q")
_COMMAND = re.compile(r"/\w*\s*")


def chat(
    context: typer.Context,
    *,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent, by name or id.", autocompletion=AGENTS)
    ],
    thread_id: Annotated[
        str | None,
        typer.Option(
            "--thread", metavar="ID", help="Continue this thread instead of a new one.", autocompletion=THREADS
        ),
    ] = None,
) -> None:
    """Chat with an agent, and decide about its calls. Messages are read line by line from the
    terminal or a pipe. A call that requires approval is shown with its arguments, and is approved,
    edited or denied before the chat continues."""
    session = session_of(context)

    def greet(found: AgentView) -> None:
        session.terminal.note(f"Chat with {found['name']} ({found['model']}). {_HELP}")

    session.show(AgentView, lambda api: api.get(path_to("agents", agent)), greet, as_json=False)
    files: list[Path] = []
    while (text := session.read_line("> ")) is not None:
        if text.strip() in _QUIT:
            break
        if not text.strip():
            continue
        if _COMMAND.fullmatch(text):  # a guess, which should not cost a run
            session.terminal.note(f"Not sent. {_HELP} Begin a message with a space to send it as it is.")
            continue
        try:
            if text.startswith(_ATTACH):
                files.append(_attached(session, Path(text.removeprefix(_ATTACH).strip())))
                continue
            thread_id = _turn(session, agent, thread_id, input_with(text, files))
            files.clear()
        except CommandFailure as failure:
            if failure.exit_code == INTERRUPTED:
                raise
            session.terminal.note(f"Error: {failure.message}")
    if thread_id is not None:
        session.terminal.note(f"Continue with: dragoman chat --agent {agent} --thread {thread_id}")


def _attached(session: Session, file: Path) -> Path:
    require_readable(file)
    session.terminal.note(f"{file.name} goes with the next message.")
    return file


def _turn(session: Session, agent: str, thread_id: str | None, message: JsonValue) -> str:
    """One message and all that its run asks; returns the thread."""
    run = _start(session, agent, thread_id, message)
    while run["status"] == "requires_action":
        body = _settled(session, read_as(list[Part], run["pending"]))
        if body is None:
            session.terminal.note(f"The run {run['id']} keeps waiting. Cancel it with: dragoman run cancel {run['id']}")
            break
        run = _resume(session, run["id"], body)
    return run["thread_id"]


def _start(session: Session, agent: str, thread_id: str | None, message: JsonValue) -> RunView:
    name: JsonObject = {"agent_id" if agent.startswith("agt_") else "agent": agent}
    runs: list[RunView] = []

    async def start(api: ServiceApi) -> None:
        from interfaces.cli.steering import started, view_for

        view = view_for(session.terminal)
        ending = await started(api, {**name, "input": message}, thread_id=thread_id, view=view)
        if ending.run["status"] != "requires_action":
            view.finish(ending.run)
        runs.append(ending.run)

    session.perform(start, worker=True)
    return runs[0]


def _resume(session: Session, run_id: str, body: JsonObject) -> RunView:
    runs: list[RunView] = []

    async def resume(api: ServiceApi) -> None:
        from interfaces.cli.steering import resumed, view_for

        view = view_for(session.terminal)
        ending = await resumed(api, run_id, body, view=view)
        if ending.run["status"] != "requires_action":
            view.finish(ending.run)
        runs.append(ending.run)

    session.perform(resume, worker=True)
    return runs[0]


def _settled(session: Session, pending: list[Part]) -> JsonObject | None:
    """Decisions and results of all calls, asked one by one; None if the person leaves."""
    approvals: list[JsonValue] = []
    results: list[JsonValue] = []
    for call in pending:
        session.terminal.note(f"{call_text(call)}  [{call.id}]")
        settled = _decision(session, call) if call.approval_id is not None else _result(session, call)
        if settled is None:
            return None
        (approvals if call.approval_id is not None else results).append(settled)
    body: JsonObject = {}
    if approvals:
        body["approvals"] = approvals
    if results:
        body["tool_results"] = results
    return body


def _decision(session: Session, call: Part) -> JsonValue:
    if call.reason:
        session.terminal.note(f"It requires approval: {call.reason}")
    while (said := session.read_line("Approve? [y]es, [n]o, [e]dit arguments: ")) is not None:
        match said.strip().lower():
            case "y" | "yes":
                return {"tool_call_id": call.id, "decision": "approve"}
            case "n" | "no":
                reason = session.read_line("Reason, for the model (may be empty): ") or ""
                return {"tool_call_id": call.id, "decision": "deny", **({"reason": reason} if reason.strip() else {})}
            case "e" | "edit":
                arguments = json_object(session.read_line("Arguments, as a JSON object: ") or "")
                if arguments is not None:
                    return {"tool_call_id": call.id, "decision": "approve", "arguments": arguments}
                session.terminal.note("That is not a JSON object.")
            case _:
                session.terminal.note("Answer y, n or e; Ctrl-D leaves the run waiting.")
    return None


def _result(session: Session, call: Part) -> JsonValue:
    if call.elicitation is None:
        said = session.read_line(f"Result of {call.name}: ")
        return None if said is None else tool_result(f"{call.id}={said}")
    session.terminal.note(pending_question(call.elicitation))
    while (said := session.read_line("Answer, as a JSON object, or accept, decline, cancel: ")) is not None:
        try:
            return elicited_answer(f"{call.id}={said.strip()}")
        except CommandFailure as failure:
            session.terminal.note(failure.message)
    return None
