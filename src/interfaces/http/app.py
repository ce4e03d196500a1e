"""Builds the HTTP application from the use cases: routes, authentication, problems, OpenAPI, access log."""

from dataclasses import fields

from litestar import Litestar

from application.metrics.ports import RequestMeter
from application.system.ports import Clock
from interfaces.console.entry import with_console
from interfaces.console.sessions import ConsoleSessions
from interfaces.gateway.app import with_gateway
from interfaces.gateway.asking import GatewayQuestions
from interfaces.gateway.contents import GatewayContents
from interfaces.gateway.endpoint import GatewayEndpoint
from interfaces.gateway.legacy_clients import LegacyClients
from interfaces.gateway.logs import GatewayLogs
from interfaces.gateway.methods import GatewayMethods
from interfaces.gateway.streams import GatewayStreams, StreamLimits
from interfaces.gateway.subscriptions import ResourceSubscriptions
from interfaces.gateway.tasks import GatewayTaskMethods
from interfaces.http.access_log import with_access_log
from interfaces.http.agents.routes import agents_routes
from interfaces.http.api_keys.routes import api_keys_routes
from interfaces.http.approvals.routes import approvals_routes
from interfaces.http.audit.routes import audit_routes
from interfaces.http.auth import authentication
from interfaces.http.bodies import MAX_JSON_BYTES, BodyDecoding
from interfaces.http.gateway_sessions.routes import gateway_sessions_routes
from interfaces.http.health import ReadinessProbe, health_router
from interfaces.http.mcp_servers.routes import mcp_servers_routes
from interfaces.http.metrics import Monitoring, metrics_router
from interfaces.http.model_providers.routes import model_providers_routes
from interfaces.http.oauth.routes import oauth_router
from interfaces.http.openapi import SECURITY_SCHEME, BodySchemas, front_door, openapi_config
from interfaces.http.organization.routes import organization_routes
from interfaces.http.organizations.routes import organizations_routes
from interfaces.http.problems import exception_handlers
from interfaces.http.query_names import only_declared_queries
from interfaces.http.requests import ApiRequest
from interfaces.http.routing import OwnRouter, asked_for, instance_of
from interfaces.http.runs.following import RunStreams, RunWaits
from interfaces.http.runs.routes import runs_routes
from interfaces.http.schedules.routes import schedules_routes
from interfaces.http.secrets.routes import secrets_routes
from interfaces.http.sources.routes import sources_routes
from interfaces.http.sse import EventFrames
from interfaces.http.threads.routes import threads_routes
from interfaces.http.tools.routes import tools_routes
from interfaces.http.usage.routes import usage_routes
from interfaces.http.use_cases import Readiness, UseCases
from interfaces.http.webhooks.routes import webhooks_routes
from interfaces.http.workflow_runs.following import WorkflowRunStreams
from interfaces.http.workflow_runs.routes import workflow_runs_routes
from interfaces.http.workflows.routes import workflows_routes

HEARTBEAT_S = 15.0


def create_app(
    use_cases: UseCases,
    *,
    readiness: Readiness,
    meter: RequestMeter,
    monitoring: Monitoring,
    sessions: ConsoleSessions,
    clock: Clock,
    version: str,
    heartbeat_s: float = HEARTBEAT_S,
    stream_limits: StreamLimits | None = None,
) -> Litestar:
    """The application. It owns nothing: what the use cases stand on is started and stopped by others.

    `monitoring` answers /metrics, `sessions` are those of the console, `meter` hears of requests, `stream_limits` are those
    of the gateway's streams; `version` is shown in the OpenAPI document; `heartbeat_s` is the silence after which a stream
    sends a comment.
    """
    waits = RunWaits(start_run=use_cases.start_run, watch_run=use_cases.watch_run)
    frames = EventFrames()
    streams = RunStreams(
        start_run=use_cases.start_run,
        watch_run=use_cases.watch_run,
        get_run=use_cases.get_run,
        frames=frames,
        heartbeat_s=heartbeat_s,
    )
    workflow_streams = WorkflowRunStreams(
        watch=use_cases.watch_workflow_run, get_run=use_cases.get_workflow_run, heartbeat_s=heartbeat_s
    )
    provided = {field.name: instance_of(getattr(use_cases, field.name)) for field in fields(use_cases)}
    provided |= {
        "run_waits": instance_of(waits),
        "run_streams": instance_of(streams),
        "workflow_run_streams": instance_of(workflow_streams),
    }
    slices = (
        agents_routes(),
        mcp_servers_routes(),
        tools_routes(),
        threads_routes(),
        sources_routes(),
        runs_routes(),
        approvals_routes(),
        organization_routes(),
        organizations_routes(),
        audit_routes(),
        api_keys_routes(),
        gateway_sessions_routes(),
        schedules_routes(),
        secrets_routes(),
        workflows_routes(),
        workflow_runs_routes(),
        model_providers_routes(),
        usage_routes(),
        webhooks_routes(),
    )
    v1 = OwnRouter(
        "/v1",
        route_handlers=[
            OwnRouter("/", route_handlers=routes, dependencies=asked_for(routes, provided)) for routes in slices
        ],
        middleware=[authentication(use_cases.authenticate)],
        guards=[only_declared_queries],
        security=[{SECURITY_SCHEME: []}],
    )
    app = Litestar(
        route_handlers=[v1, front_door, health_router(), metrics_router(), oauth_router()],
        dependencies={
            "readiness": instance_of(ReadinessProbe(readiness)),
            "monitoring": instance_of(monitoring),
            "finish_mcp_authorization": instance_of(use_cases.finish_mcp_authorization),
            "describe_oauth_client": instance_of(use_cases.describe_oauth_client),
        },
        request_class=ApiRequest,
        request_max_body_size=MAX_JSON_BYTES,
        exception_handlers=exception_handlers(),
        plugins=[BodyDecoding(), BodySchemas()],
        openapi_config=openapi_config(version),
        logging_config=None,
    )
    methods = GatewayMethods(
        list_tools=use_cases.list_gateway_tools,
        call_tool=use_cases.call_gateway_tool,
        contents=GatewayContents(
            list_contents=use_cases.list_gateway_contents, read_content=use_cases.read_gateway_content
        ),
        logs=GatewayLogs(handshakes=use_cases.client_handshakes),
        subscriptions=ResourceSubscriptions(check=use_cases.check_subscription, handshakes=use_cases.client_handshakes),
        tasks=GatewayTaskMethods(tasks=use_cases.gateway_tasks),
        version=version,
    )
    address = use_cases.public_address
    clients = LegacyClients(handshakes=use_cases.client_handshakes)
    listening = GatewayStreams(
        follow=use_cases.follow_changes, limits=stream_limits or StreamLimits(heartbeat_s=heartbeat_s)
    )
    gateway = GatewayEndpoint(
        access=use_cases.gateway_access,
        methods=methods,
        clients=clients,
        streams=listening,
        questions=GatewayQuestions(answer_question=use_cases.answer_gateway_question),
        cancellations=use_cases.request_cancellations,
        address=address,
    )
    api = with_console(
        app.asgi_handler,
        use_cases,
        sessions=sessions,
        clock=clock,
        frames=frames,
        version=version,
        heartbeat_s=heartbeat_s,
    )
    app.asgi_handler = with_access_log(with_gateway(api, gateway, address), meter)
    return app


def create_monitoring_app(*, readiness: Readiness, monitoring: Monitoring) -> Litestar:
    """The application of a process that serves nothing else: health and metrics."""
    return Litestar(
        route_handlers=[health_router(), metrics_router()],
        dependencies={"readiness": instance_of(ReadinessProbe(readiness)), "monitoring": instance_of(monitoring)},
        request_class=ApiRequest,
        exception_handlers=exception_handlers(),
        openapi_config=None,
        logging_config=None,
    )
