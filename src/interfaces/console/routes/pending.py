"""Pending actions of a run besides approvals: client tools, and questions of MCP servers."""

from typing import cast

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from application.runs.queries import GetRun
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from domain.errors import Violation, invalid
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import Elicitation, ElicitationAction
from interfaces.console.inbox_answers import is_from_inbox, settled
from interfaces.console.pages import Pages
from interfaces.console.questions import content_of
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.runs import RunPages
from interfaces.console.routes.sign_in import Form

DISPLAYED = "Tool has been displayed successfully"


@post("/runs/{run_id:str}/settle", status_code=200)
async def settle_call(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    resume_run: NamedDependency[ResumeRun],
    run_pages: NamedDependency[RunPages],
) -> Response[str]:
    """Record the result of a client tool call."""
    given = ClientToolResult(
        tool_call_id=ToolCallId(data.get("call", "")),
        result=data.get("result") or DISPLAYED,
        is_error=data.get("outcome") == "failed",
    )
    await resume_run.execute(ResumeRunCommand(principal=request.principal, run_id=RunId(run_id), tool_results=(given,)))
    if is_from_inbox(request):
        return settled(pages, request, "The call", "settled")
    return pages.show(request, "parts/run_changes.html", await run_pages.of(request.principal, RunId(run_id)))


@post("/runs/{run_id:str}/answer", status_code=200)
async def answer_question(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_run: NamedDependency[GetRun],
    resume_run: NamedDependency[ResumeRun],
    run_pages: NamedDependency[RunPages],
) -> Response[str]:
    """Answer the shown question of a call's server, and no other."""
    principal, call_id = request.principal, ToolCallId(data.get("call", ""))
    run = await get_run.execute(principal, RunId(run_id))
    question = next((use.elicitation for use in run.pending if use.id == call_id), None)
    if question is None:
        raise invalid("question_gone", "This question no longer waits for an answer.")
    given = ClientToolResult(tool_call_id=call_id, result=_answer(question, data))
    await resume_run.execute(ResumeRunCommand(principal=principal, run_id=run.id, tool_results=(given,)))
    if is_from_inbox(request):
        return settled(pages, request, "The question", "answered")
    return pages.show(request, "parts/run_changes.html", await run_pages.of(principal, run.id))


def _answer(question: Elicitation, data: dict[str, str]) -> JsonObject:
    action = data.get("action")
    if action not in list(ElicitationAction):
        raise invalid(
            "action_invalid",
            "Answer, decline or cancel.",
            Violation(path="action", message="accept, decline or cancel"),
        )
    answer: JsonObject = {"action": cast(JsonValue, action), "request_id": data.get("question", "")}
    if action == ElicitationAction.ACCEPT and question.schema is not None:
        answer["content"] = content_of(question.schema, data)
    return answer
