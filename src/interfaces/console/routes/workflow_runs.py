"""Workflow runs: the page of one, live on its graph, with answers, decisions and cancellation."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.agents.name_agents import NameAgents
from application.approvals.ports import ApprovalFilter
from application.approvals.queries import ListApprovals, WhyNotApprovable, WhyNotEditable
from application.system.pages import Page, PageRequest
from application.workflows.replay_workflow_run import ReplayWorkflowRun, ReplayWorkflowRunCommand
from application.workflows.resume_workflow_run import ResumeWorkflowRun, ResumeWorkflowRunCommand
from application.workflows.run_queries import GetWorkflowRun, WatchWorkflowRun
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.approvals.approval import Approval, ApprovalState
from domain.errors import ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import WorkflowRunId
from domain.workflows.run import WorkflowRun
from interfaces.console.argument_forms import ArgumentForms
from interfaces.console.canvas import graph_text, marks_text
from interfaces.console.faults import FormCheck
from interfaces.console.human_answers import answer_to, question_of
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.run_events import AfterSeq
from interfaces.console.routes.sign_in import Form
from interfaces.console.routes.workflows import nodes_of
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH
from interfaces.http.sse import EventStream, end_frame, sequence_after
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.workflow_runs.views import workflow_event_frame

logger = logging.getLogger(__name__)

CHANGED = "workflow-changed"
"""Event of the page when the run changes."""


class WorkflowRunPages:
    """Data of a workflow run's page."""

    def __init__(
        self,
        *,
        get_workflow_run: GetWorkflowRun,
        list_approvals: ListApprovals,
        why_not_approvable: WhyNotApprovable,
        why_not_editable: WhyNotEditable,
        name_agents: NameAgents,
        argument_forms: ArgumentForms,
    ) -> None:
        self._argument_forms = argument_forms
        self._why_not = why_not_approvable
        self._why_fixed = why_not_editable
        self._get = get_workflow_run
        self._approvals = list_approvals
        self._name_agents = name_agents

    async def of(self, principal: Principal, run_id: WorkflowRunId) -> dict[str, object]:
        """The run on its graph, and its pending questions and approvals. Raises NOT_FOUND."""
        run = await self._get.execute(principal, run_id)
        definition = await self._get.definition(principal, run)
        questions = [found for node in run.waiting_nodes if (found := question_of(node)) is not None]
        approvals = await self._waiting_approvals(principal, run)
        return {
            "run": run,
            "name": definition.name,
            "graph": graph_text(definition),
            "marks": marks_text(definition, run),
            "nodes": nodes_of(definition),
            "states": run.nodes,
            "questions": questions,
            "approvals": approvals,
            "why_not": await self._why_not.execute(principal, approvals),
            "why_fixed": await self._why_fixed.execute(principal, approvals),
            "argument_forms": await self._argument_forms.of(principal, approvals),
            "agent_names": await self._name_agents.execute(principal, (each.agent_id for each in approvals)),
            "agents_waiting": [node for node in run.waiting_nodes if node.run_id is not None],
            "may_decide": principal.may(Permission.APPROVALS_DECIDE),
            "may_answer": _may_act(principal, run),
        }

    async def _waiting_approvals(self, principal: Principal, run: WorkflowRun) -> list[Approval]:
        """Pending approvals of the runs of its agents."""
        found: list[Approval] = []
        for node in run.waiting_nodes:
            if node.run_id is not None:
                wanted = ApprovalFilter(state=ApprovalState.PENDING, run_id=node.run_id)
                found += await all_of(partial(self._page_of_approvals, principal, wanted))
        return found

    async def _page_of_approvals(
        self, principal: Principal, wanted: ApprovalFilter, page: PageRequest
    ) -> Page[Approval]:
        return await self._approvals.execute(principal=principal, wanted=wanted, page=page)


@get("/workflows/runs/{run_id:str}")
async def show_workflow_run(
    request: ConsoleRequest,
    run_id: FromPath[str],
    pages: NamedDependency[Pages],
    workflow_run_pages: NamedDependency[WorkflowRunPages],
) -> Response[str]:
    return pages.show(
        request, "workflow_run.html", await workflow_run_pages.of(request.principal, WorkflowRunId(run_id))
    )


@get("/workflows/runs/{run_id:str}/state")
async def show_workflow_run_state(
    request: ConsoleRequest,
    run_id: FromPath[str],
    pages: NamedDependency[Pages],
    workflow_run_pages: NamedDependency[WorkflowRunPages],
) -> Response[str]:
    """The current state and what waits for people."""
    return pages.show(
        request, "parts/workflow_run.html", await workflow_run_pages.of(request.principal, WorkflowRunId(run_id))
    )


@get("/workflows/runs/{run_id:str}/stream")
async def stream_workflow_run(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    get_workflow_run: NamedDependency[GetWorkflowRun],
    watch_workflow_run: NamedDependency[WatchWorkflowRun],
    stream_places: NamedDependency[StreamPlaces],
    heartbeat_s: NamedDependency[float],
    after: AfterSeq = 0,
) -> EventStream:
    """New events until the run has ended, also beyond points where it waits."""
    principal = request.principal
    run = await get_workflow_run.execute(principal, WorkflowRunId(run_id))
    seq = max(after, sequence_after(request.headers.get("Last-Event-ID")))

    async def frames() -> AsyncGenerator[bytes, None]:
        try:
            following = watch_workflow_run.follow(principal, run.id, after_seq=seq, to_the_end=True)
            async with aclosing(following) as events:
                async for event in events:
                    yield workflow_event_frame(run.id, event)
            yield end_frame((await get_workflow_run.execute(principal, run.id)).status)
        except ServiceError as error:
            logger.info(
                "stream of the console ended by the server", extra={"workflow_run_id": run.id, "code": error.code}
            )

    return EventStream(frames(), heartbeat_s=heartbeat_s, place=stream_places.take(principal))


@post("/workflows/runs/{run_id:str}/answer", status_code=200)
async def answer_node(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_workflow_run: NamedDependency[GetWorkflowRun],
    resume_workflow_run: NamedDependency[ResumeWorkflowRun],
) -> Response[str]:
    """Answer a node that waits for a person."""
    node_id = data.get("node_id", "")
    run = await get_workflow_run.execute(request.principal, WorkflowRunId(run_id))
    question = next(
        (found for node in run.waiting_nodes if (found := question_of(node)) and found.node_id == node_id), None
    )
    if question is None:
        raise conflict("node_not_waiting", f"The node {node_id!r} no longer waits for an answer.")
    field = f"answer-{node_id}"
    with FormCheck({"answers.0.answer": field}, labels={field: question.label}) as check:
        answers = {node_id: answer_to(question, data)}
        await resume_workflow_run.execute(
            ResumeWorkflowRunCommand(principal=request.principal, run_id=run.id, answers=answers)
        )
        headers = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}
        return pages.show(request, "parts/answered.html", {"node_id": node_id}, headers=headers)
    return check.shown(pages, request)


@post("/workflows/runs/{run_id:str}/replay", status_code=200)
async def replay_run(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    replay_workflow_run: NamedDependency[ReplayWorkflowRun],
) -> Response[str]:
    """A new run from a node on, or of that node alone; it is shown."""
    with FormCheck() as check:
        command = ReplayWorkflowRunCommand(
            principal=request.principal,
            run_id=WorkflowRunId(run_id),
            node_id=data.get("node_id", ""),
            alone=data.get("alone") == "true",
        )
        run = await replay_workflow_run.execute(command)
        return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/workflows/runs/{run.id}"})
    return check.shown(pages, request)


@post("/workflows/runs/{run_id:str}/cancel", status_code=200)
async def cancel_workflow_run(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    pages: NamedDependency[Pages],
    stop_workflow_run: NamedDependency[StopWorkflowRun],
    workflow_run_pages: NamedDependency[WorkflowRunPages],
) -> Response[str]:
    """Cancel it and the runs of its agents."""
    run = WorkflowRunId(run_id)
    await stop_workflow_run.execute(StopWorkflowRunCommand(principal=request.principal, run_id=run))
    return pages.show(request, "parts/workflow_run.html", await workflow_run_pages.of(request.principal, run))


def _may_act(principal: Principal, run: WorkflowRun) -> bool:
    """Whether the principal may act on the run: runners on their own runs, operators on any."""
    own = run.requested_by == principal.key_id and principal.may(Permission.RUNS_START)
    return own or principal.may(Permission.RUNS_CONTROL)
