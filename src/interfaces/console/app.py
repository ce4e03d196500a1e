"""Puts the console together: an application of its own, as it is loaded only when somebody goes there (entry.py)."""

from dataclasses import fields

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from application.system.ports import Clock
from interfaces.console.agents.pages import AgentPages
from interfaces.console.failures import failure_handlers
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.agent_editing import agent_editing_routes
from interfaces.console.routes.agents import agent_routes
from interfaces.console.routes.approvals import decide, show_approvals, show_approvals_part
from interfaces.console.routes.audit import export_audit, show_audit, verify_audit
from interfaces.console.routes.keys import KeyPages, key_routes
from interfaces.console.routes.overview import Overview, show_overview, show_overview_part
from interfaces.console.routes.pending import answer_question, settle_call
from interfaces.console.routes.playground import show_playground, start
from interfaces.console.routes.run_events import read_events, stream_run
from interfaces.console.routes.runs import RunPages, cancel_run, show_run, show_run_state, show_runs
from interfaces.console.routes.secrets import SecretPages, secret_routes
from interfaces.console.routes.server_actions import server_action_routes
from interfaces.console.routes.server_forms import server_form_routes
from interfaces.console.routes.server_import import server_import_routes
from interfaces.console.routes.servers import (
    ServerPages,
    approve_tool,
    refresh_server,
    show_logs,
    show_server,
    show_servers,
    test_server,
)
from interfaces.console.routes.settings import settings_routes
from interfaces.console.routes.sign_in import sign_in, sign_in_page, sign_out
from interfaces.console.routes.static import read_asset
from interfaces.console.routes.usage import usage_page_routes
from interfaces.console.routes.workflow_runs import WorkflowRunPages, workflow_run_routes
from interfaces.console.routes.workflows import WorkflowPages, workflow_routes
from interfaces.console.run_costs import RunCosts
from interfaces.console.sessions import PATH, ConsoleSessions, signed_in
from interfaces.console.usage_pages import UsagePages
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.routing import OwnRouter, asked_for, instance_of
from interfaces.http.runs.frames import EventFrames
from interfaces.http.use_cases import UseCases


def console_app(
    use_cases: UseCases,
    *,
    sessions: ConsoleSessions,
    clock: Clock,
    frames: EventFrames,
    version: str,
    heartbeat_s: float,
) -> Litestar:
    """What answers below `/console`."""
    pages = Pages(version=version)
    handlers = failure_handlers(pages)
    run_costs = RunCosts(prices=use_cases.prices)
    overview = Overview(
        list_runs=use_cases.list_runs,
        name_agents=use_cases.name_agents,
        run_costs=run_costs,
        list_approvals=use_cases.list_approvals,
        list_mcp_servers=use_cases.list_mcp_servers,
        get_mcp_server_status=use_cases.get_mcp_server_status,
        get_usage=use_cases.get_usage,
        clock=clock,
    )
    run_pages = RunPages(
        get_run=use_cases.get_run,
        name_agents=use_cases.name_agents,
        run_costs=run_costs,
        list_approvals=use_cases.list_approvals,
        list_audit_events=use_cases.list_audit_events,
        trace_addresses=use_cases.trace_addresses,
    )
    server_pages = ServerPages(
        get_mcp_server_tools=use_cases.get_mcp_server_tools,
        get_mcp_server_status=use_cases.get_mcp_server_status,
        get_mcp_server_logs=use_cases.get_mcp_server_logs,
    )
    agent_pages = AgentPages(
        get_agent=use_cases.get_agent,
        list_agents=use_cases.list_agents,
        list_agent_versions=use_cases.list_agent_versions,
        list_runs=use_cases.list_runs,
        list_audit_events=use_cases.list_audit_events,
        list_mcp_servers=use_cases.list_mcp_servers,
        get_organization=use_cases.get_organization,
        explain_agent=use_cases.explain_agent,
    )
    workflow_pages = WorkflowPages(
        get_workflow=use_cases.get_workflow,
        list_workflow_versions=use_cases.list_workflow_versions,
        list_workflow_runs=use_cases.list_workflow_runs,
    )
    workflow_run_pages = WorkflowRunPages(
        get_workflow_run=use_cases.get_workflow_run,
        list_approvals=use_cases.list_approvals,
        name_agents=use_cases.name_agents,
    )
    own = {
        "pages": pages,
        "sessions": sessions,
        "overview": overview,
        "run_pages": run_pages,
        "run_costs": run_costs,
        "server_pages": server_pages,
        "agent_pages": agent_pages,
        "key_pages": KeyPages(list_api_keys=use_cases.list_api_keys, clock=clock),
        "secret_pages": SecretPages(
            list_secrets=use_cases.list_secrets, list_model_providers=use_cases.list_model_providers
        ),
        "usage_pages": UsagePages(get_usage=use_cases.get_usage, list_agents=use_cases.list_agents, clock=clock),
        "workflow_pages": workflow_pages,
        "workflow_run_pages": workflow_run_pages,
    }
    routes = console_routes()
    provided = {field.name: instance_of(getattr(use_cases, field.name)) for field in fields(use_cases)}
    router = OwnRouter(
        PATH,
        route_handlers=routes,
        middleware=[signed_in(sessions)],
        dependencies={
            **asked_for(routes, provided),
            **{name: instance_of(instance) for name, instance in own.items()},
            "event_frames": instance_of(frames),
            "heartbeat_s": instance_of(heartbeat_s),
        },
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
    """Everything that answers below `/console`."""
    return [
        read_asset,
        sign_in_page,
        sign_in,
        sign_out,
        show_overview,
        show_overview_part,
        show_runs,
        show_run,
        show_run_state,
        read_events,
        stream_run,
        settle_call,
        answer_question,
        cancel_run,
        show_approvals,
        show_approvals_part,
        decide,
        show_playground,
        start,
        show_servers,
        show_server,
        show_logs,
        test_server,
        refresh_server,
        approve_tool,
        *server_action_routes(),
        *server_form_routes(),
        *server_import_routes(),
        *workflow_routes(),
        *workflow_run_routes(),
        show_audit,
        export_audit,
        verify_audit,
        *agent_routes(),
        *agent_editing_routes(),
        *key_routes(),
        *usage_page_routes(),
        *settings_routes(),
        *secret_routes(),
    ]
