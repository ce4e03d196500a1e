"""Routes to create and change agents, with a live view of their effective permissions."""

from dataclasses import dataclass
from typing import cast

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from application.agents.create_agent import CreateAgent, CreateAgentCommand
from application.agents.queries import GetAgent
from application.agents.update_agent import UpdateAgent, UpdateAgentCommand
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from interfaces.console.agents.form import (
    CANARIES,
    NEW_AGENT,
    agent_body,
    agent_field,
    agent_values,
    both_changed,
    draft_body,
    merged,
)
from interfaces.console.agents.pages import AgentPages, Conflict, explained_context
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.agents import AGENTS_PATH, to_page
from interfaces.console.routes.sign_in import Form
from interfaces.http.agents.schemas import CreateAgentBody, UpdateAgentBody
from interfaces.http.agents.views import AgentView, agent_view
from interfaces.http.bodies import decoded_body
from interfaces.http.problems import STATUS_OF_KIND

_FORM = "parts/agent_form.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """The person's settings, and the version that they edited."""

    base: Agent
    form: FormValues
    mine: JsonObject


@get("/agents/new")
async def show_new_agent(
    request: ConsoleRequest, pages: NamedDependency[Pages], agent_pages: NamedDependency[AgentPages]
) -> Response[str]:
    request.principal.require(Permission.AGENTS_MANAGE)
    form = FormValues(NEW_AGENT)
    context = await _form(request.principal, form, agent_pages)
    return pages.show(request, "agent_edit.html", {**context, "agent": None})


@get("/agents/{agent_id:str}/edit")
async def show_agent_form(
    *,
    request: ConsoleRequest,
    agent_id: FromPath[str],
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    get_agent: NamedDependency[GetAgent],
) -> Response[str]:
    request.principal.require(Permission.AGENTS_MANAGE)
    agent = await get_agent.execute(principal=request.principal, agent=agent_id)
    form = FormValues(agent_values(agent_view(agent)))
    context = await _form(request.principal, form, agent_pages)
    return pages.show(request, "agent_edit.html", {**context, "agent": agent})


@post("/agents/explain", status_code=200)
async def explain_draft(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], agent_pages: NamedDependency[AgentPages]
) -> Response[str]:
    """Explain the tools of a draft. Nothing is saved."""
    form = FormValues(data)
    context = await _draft(request.principal, form, agent_pages)
    return pages.show(request, "parts/agent_tools.html", {**context, "form": form, "live": True})


@post("/agents", status_code=200)
async def create_agent_page(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    create_agent: NamedDependency[CreateAgent],
) -> Response[str]:
    principal, form = request.principal, FormValues(data)
    try:
        body = decoded_body(CreateAgentBody, agent_body(form))
        agent = await create_agent.execute(
            CreateAgentCommand(principal=principal, settings=body.to_settings(), canary_tokens=body.to_canaries())
        )
    except ServiceError as error:
        context = await _form(principal, form, agent_pages, faults=_faults(form, error))
        return pages.show(request, _FORM, {**context, "agent": None}, status=STATUS_OF_KIND[error.kind])
    return to_page(f"{AGENTS_PATH}/{agent.id}")


@post("/agents/{agent_id:str}", status_code=200)
async def save_agent(
    *,
    request: ConsoleRequest,
    agent_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    get_agent: NamedDependency[GetAgent],
    update_agent: NamedDependency[UpdateAgent],
) -> Response[str]:
    """Save a new version. If another user saved meanwhile, show their changes and a merged form
    to save again."""
    principal, form = request.principal, FormValues(data)
    principal.require(Permission.AGENTS_MANAGE)
    agent = await get_agent.execute(principal=principal, agent=agent_id)
    conflict: Conflict | None = None
    faults = NO_FAULTS
    try:
        await update_agent.execute(_change(principal, agent, form))
        return to_page(f"{AGENTS_PATH}/{agent.id}")
    except ServiceError as error:
        status = STATUS_OF_KIND[error.kind]
        if error.kind is ErrorKind.PRECONDITION:
            base = await agent_pages.version(principal, agent.id, _began_with(form)) or agent
            sides = _Sides(base=base, form=form, mine=agent_body(form.again()))
            conflict, form = await _put_together(principal, sides, agent_pages)
            agent = conflict.agent
        else:
            faults = _faults(form, error)
    context = await _form(principal, form, agent_pages, faults=faults, conflict=conflict)
    return pages.show(request, _FORM, {**context, "agent": agent}, status=status)


def _change(principal: Principal, agent: Agent, form: FormValues) -> UpdateAgentCommand:
    """Raises INVALID."""
    body = decoded_body(UpdateAgentBody, agent_body(form))
    return UpdateAgentCommand(
        principal=principal,
        agent=agent.id,
        changes=body.to_changes(),
        limits=body.to_limit_changes(),
        canary_tokens=body.to_canaries(),
        expected_version=_began_with(form),
    )


def _began_with(form: FormValues) -> int:
    """The edited version; 0 if invalid."""
    return form.again().whole("version") or 0


async def _put_together(principal: Principal, sides: _Sides, agent_pages: AgentPages) -> tuple[Conflict, FormValues]:
    """Their changes, and a merged form to be saved over the current version."""
    base = agent_body(FormValues(agent_values(agent_view(sides.base))))
    conflict = await agent_pages.conflict(principal, sides.base, ())
    view = agent_view(conflict.agent)
    theirs = agent_body(FormValues(agent_values(view)))
    together = cast(AgentView, {**view, **merged(sides.mine, base, theirs), "canary_tokens": view["canary_tokens"]})
    values = agent_values(together)
    if sides.mine["canary_tokens"] != base["canary_tokens"]:
        values = {name: value for name, value in values.items() if not name.startswith(f"{CANARIES}.")}
        values |= sides.form.beginning(f"{CANARIES}.")
    both = both_changed(sides.mine, base, theirs)
    return Conflict(agent=conflict.agent, actor=conflict.actor, changes=conflict.changes, both=both), FormValues(values)


async def _form(
    principal: Principal,
    form: FormValues,
    agent_pages: AgentPages,
    *,
    faults: FieldFaults = NO_FAULTS,
    conflict: Conflict | None = None,
) -> dict[str, object]:
    """The form with its effective permissions."""
    context = await agent_pages.form(principal, form, faults=faults, conflict=conflict)
    return {**context, **await _draft(principal, form.again(), agent_pages)}


async def _draft(principal: Principal, form: FormValues, agent_pages: AgentPages) -> dict[str, object]:
    """Effective permissions of a draft, or the reason why they are unknown."""
    try:
        body = draft_body(form)
        if form.wrong:
            unreadable = _faults(form, None)
        else:
            settings = decoded_body(CreateAgentBody, body).to_settings()
            return explained_context(await agent_pages.explained(principal, settings))
    except ServiceError as error:
        unreadable = _faults(form, error)
    said = [
        *unreadable.others,
        *(f"{form.label(name)}: {fault}" for name, each in unreadable.by_field.items() for fault in each),
    ]
    return {
        "explained": (),
        "explained_total": 0,
        "standings": {},
        "warnings": (),
        "unavailable": (),
        "unreadable": said,
    }


def _faults(form: FormValues, error: ServiceError | None) -> FieldFaults:
    """Faults by field; other expected failures, such as a taken name, as sentences. Raises all
    others."""
    if error is None:
        return FieldFaults.of(form.wrong, lambda path: agent_field(form, path))
    if error.code == "agent_name_taken":
        return FieldFaults(by_field={"name": [error.detail]})
    if error.kind is not ErrorKind.INVALID:
        raise error
    return FieldFaults.of_refusal(error, lambda path: agent_field(form, path))
