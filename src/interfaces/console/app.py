"""Assembles the console as a separate application, loaded on first use (entry.py)."""

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler

from infrastructure.container import Container
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
from interfaces.http.routing import OwnRouter, dependencies
from interfaces.http.runs.frames import EventFrames


def console_app(container: Container, *, frames: EventFrames, heartbeat_s: float) -> Litestar:
    clock = container.clock()
    sessions = ConsoleSessions(
        authenticate=container.authenticate(),
        box=container.secret_box(),
        clock=clock,
        address=container.public_address(),
    )
    pages = Pages(version=container.app_version())
    handlers = failure_handlers(pages)
    run_costs = RunCosts(prices=container.prices())
    overview = Overview(
        list_runs=container.list_runs(),
        name_agents=container.name_agents(),
        run_costs=run_costs,
        list_approvals=container.list_approvals(),
        list_mcp_servers=container.list_mcp_servers(),
        get_mcp_server_status=container.get_mcp_server_status(),
        get_usage=container.get_usage(),
        clock=clock,
    )
    run_pages = RunPages(
        get_run=container.get_run(),
        name_agents=container.name_agents(),
        run_costs=run_costs,
        list_approvals=container.list_approvals(),
        list_audit_events=container.list_audit_events(),
        trace_addresses=container.trace_addresses(),
    )
    server_pages = ServerPages(
        get_mcp_server_tools=container.get_mcp_server_tools(),
        get_mcp_server_status=container.get_mcp_server_status(),
        get_mcp_server_logs=container.get_mcp_server_logs(),
    )
    agent_pages = AgentPages(
        get_agent=container.get_agent(),
        list_agents=container.list_agents(),
        list_agent_versions=container.list_agent_versions(),
        list_runs=container.list_runs(),
        list_audit_events=container.list_audit_events(),
        list_mcp_servers=container.list_mcp_servers(),
        get_organization=container.get_organization(),
        explain_agent=container.explain_agent(),
    )
    workflow_pages = WorkflowPages(
        get_workflow=container.get_workflow(),
        list_workflow_versions=container.list_workflow_versions(),
        list_workflow_runs=container.list_workflow_runs(),
    )
    workflow_run_pages = WorkflowRunPages(
        get_workflow_run=container.get_workflow_run(),
        list_approvals=container.list_approvals(),
        name_agents=container.name_agents(),
    )
    own = {
        "pages": pages,
        "sessions": sessions,
        "overview": overview,
        "run_pages": run_pages,
        "run_costs": run_costs,
        "server_pages": server_pages,
        "agent_pages": agent_pages,
        "key_pages": KeyPages(list_api_keys=container.list_api_keys(), clock=clock),
        "secret_pages": SecretPages(
            list_secrets=container.list_secrets(), list_model_providers=container.list_model_providers()
        ),
        "usage_pages": UsagePages(get_usage=container.get_usage(), list_agents=container.list_agents(), clock=clock),
        "workflow_pages": workflow_pages,
        "workflow_run_pages": workflow_run_pages,
        "event_frames": frames,
        "heartbeat_s": heartbeat_s,
    }
    routes = console_routes()
    router = OwnRouter(
        PATH,
        route_handlers=routes,
        middleware=[signed_in(sessions)],
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
