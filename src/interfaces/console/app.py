"""Assembles the console as a separate application, loaded on first use (entry.py)."""

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container
from interfaces.console.agents.pages import AgentPages
from interfaces.console.argument_forms import ArgumentForms
from interfaces.console.canvas import CanvasChoices
from interfaces.console.failures import failure_handlers
from interfaces.console.first_agent import FirstAgent
from interfaces.console.inbox import Inbox
from interfaces.console.inbox_history import InboxHistory
from interfaces.console.named import Named
from interfaces.console.overview_charts import OverviewCharts
from interfaces.console.pages import Pages
from interfaces.console.rate_limits import RateLimits
from interfaces.console.requests import ConsoleRequest
from interfaces.console.resource_names import ResourceNames
from interfaces.console.routes import (
    accounts,
    agent_editing,
    agents,
    approvals,
    audit,
    authorize,
    budgets,
    chat,
    compare,
    deliveries,
    first_agent,
    frame,
    gateway_sessions,
    identity_providers,
    impersonation,
    inbox,
    inbox_bulk,
    keys,
    model_providers,
    organizations,
    overview,
    palette,
    pending,
    people,
    playground,
    queue,
    registries,
    roles,
    run_events,
    run_list,
    runs,
    schedules,
    secrets,
    server_actions,
    server_contents,
    server_forms,
    server_import,
    server_trial,
    servers,
    sessions,
    settings,
    sign_in,
    sign_in_providers,
    static,
    threads,
    usage,
    workflow_runs,
    workflow_versions,
    workflows,
)
from interfaces.console.routes.approvals import WaitingApprovals
from interfaces.console.routes.authorize import ConsentPages
from interfaces.console.routes.budgets import Budgets
from interfaces.console.routes.chat import ChatPages
from interfaces.console.routes.compare import Comparison
from interfaces.console.routes.frame import Frame
from interfaces.console.routes.gateway_sessions import GatewayPages
from interfaces.console.routes.inbox import InboxPages
from interfaces.console.routes.inbox_bulk import BulkDecisions
from interfaces.console.routes.keys import KeyPages
from interfaces.console.routes.model_providers import ModelProviderPages
from interfaces.console.routes.overview import Overview
from interfaces.console.routes.palette import Palette
from interfaces.console.routes.people import PeoplePages
from interfaces.console.routes.registries import RegistryPages
from interfaces.console.routes.roles import RolePages
from interfaces.console.routes.runs import RunPages
from interfaces.console.routes.schedules import SchedulePages
from interfaces.console.routes.secrets import SecretPages
from interfaces.console.routes.server_trial import ServerTrial
from interfaces.console.routes.servers import ServerPages
from interfaces.console.routes.sessions import SessionPages
from interfaces.console.routes.workflow_runs import WorkflowRunPages
from interfaces.console.routes.workflows import WorkflowPages
from interfaces.console.run_costs import RunCosts
from interfaces.console.run_limits import RunLimits
from interfaces.console.run_starters import RunStarters
from interfaces.console.server_contents import ServerContentsPages
from interfaces.console.sessions import ConsoleSessions, signed_in
from interfaces.console.sign_in_attempts import SignInAttempts
from interfaces.console.sign_in_pages import SignInPages
from interfaces.console.toasts import saying
from interfaces.console.usage_pages import UsagePages
from interfaces.console.usage_people import UsagePeople
from interfaces.console.usage_tools import UsageTools
from interfaces.console_paths import PATH
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.routing import OwnRouter, built_by, dependencies, routes_of
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces


def console_app(container: Container, *, frames: EventFrames, places: StreamPlaces, heartbeat_s: float) -> Litestar:
    console_sessions = built_by(
        container, ConsoleSessions, box=container.secret_box(), address=container.public_address()
    )
    pages = Pages(version=container.app_version())
    handlers = failure_handlers(pages, console_sessions)
    run_costs = RunCosts(prices=container.prices())
    resource_names = built_by(container, ResourceNames)
    run_starters = RunStarters(resource_names=resource_names)
    collected = built_by(container, Inbox)
    forms = built_by(container, ArgumentForms)
    budgets_of_today = built_by(container, Budgets)
    own = {
        "pages": pages,
        "sessions": console_sessions,
        "sign_in_pages": built_by(
            container, SignInPages, box=container.secret_box(), address=container.public_address()
        ),
        "sign_in_attempts": SignInAttempts(clock=container.clock()),
        "run_costs": run_costs,
        "run_starters": run_starters,
        "resource_names": resource_names,
        "budgets": budgets_of_today,
        "run_limits": built_by(container, RunLimits),
        "rate_limits": built_by(
            container,
            RateLimits,
            every_key=container.settings().rate_limit_of_keys,
            every_organization=container.settings().rate_limit_of_mcp_calls,
        ),
        "consent_pages": built_by(container, ConsentPages),
        "gateway_pages": built_by(container, GatewayPages, run_starters=run_starters),
        "schedule_pages": built_by(container, SchedulePages, run_starters=run_starters),
        "palette": built_by(container, Palette, named=built_by(container, Named)),
        "chat_pages": built_by(container, ChatPages),
        "comparison": built_by(container, Comparison, run_costs=run_costs),
        "argument_forms": forms,
        "inbox_pages": built_by(container, InboxPages, inbox=collected, argument_forms=forms),
        "frame": built_by(container, Frame, inbox=collected, run_starters=run_starters),
        "bulk_decisions": built_by(container, BulkDecisions, inbox=collected),
        "inbox_history": built_by(container, InboxHistory, run_starters=run_starters),
        "waiting_approvals": built_by(container, WaitingApprovals, argument_forms=forms),
        "people_pages": built_by(container, PeoplePages),
        "role_pages": built_by(container, RolePages),
        "overview": built_by(container, Overview, run_costs=run_costs, inbox=collected, budgets=budgets_of_today),
        "overview_charts": built_by(container, OverviewCharts),
        "run_pages": built_by(
            container, RunPages, run_costs=run_costs, run_starters=run_starters, argument_forms=forms
        ),
        "registry_pages": built_by(container, RegistryPages),
        "server_pages": built_by(container, ServerPages, run_starters=run_starters),
        "server_trial": built_by(container, ServerTrial),
        "agent_pages": built_by(container, AgentPages, run_starters=run_starters),
        "first_agent": built_by(container, FirstAgent),
        "key_pages": built_by(container, KeyPages),
        "model_provider_pages": built_by(container, ModelProviderPages),
        "secret_pages": built_by(container, SecretPages),
        "session_pages": built_by(container, SessionPages, run_starters=run_starters),
        "usage_pages": built_by(container, UsagePages),
        "server_contents": built_by(container, ServerContentsPages),
        "usage_tools": built_by(container, UsageTools),
        "usage_people": built_by(container, UsagePeople, run_starters=run_starters),
        "workflow_pages": built_by(container, WorkflowPages),
        "workflow_run_pages": built_by(container, WorkflowRunPages, argument_forms=forms),
        "canvas_choices": built_by(container, CanvasChoices),
        "event_frames": frames,
        "stream_places": places,
        "heartbeat_s": heartbeat_s,
    }
    routes = console_routes()
    router = OwnRouter(
        PATH,
        route_handlers=routes,
        middleware=[signed_in(console_sessions), saying],
        dependencies=dependencies(routes, container, own),
        exception_handlers=handlers,
    )
    return Litestar(
        route_handlers=[router],
        request_class=ConsoleRequest,
        request_max_body_size=MAX_JSON_BYTES,
        exception_handlers=handlers,
        openapi_config=None,
        logging_config=None,
    )


def console_routes() -> list[HTTPRouteHandler]:
    """All routes below `/console`."""
    return routes_of(
        accounts,
        agent_editing,
        agents,
        approvals,
        audit,
        authorize,
        budgets,
        chat,
        compare,
        deliveries,
        first_agent,
        frame,
        gateway_sessions,
        identity_providers,
        impersonation,
        inbox,
        inbox_bulk,
        keys,
        model_providers,
        organizations,
        overview,
        palette,
        pending,
        people,
        roles,
        playground,
        queue,
        registries,
        run_events,
        run_list,
        runs,
        schedules,
        secrets,
        server_actions,
        server_contents,
        server_forms,
        server_import,
        server_trial,
        servers,
        sessions,
        settings,
        sign_in,
        sign_in_providers,
        static,
        threads,
        usage,
        workflow_runs,
        workflow_versions,
        workflows,
    )
