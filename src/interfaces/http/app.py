"""Builds the HTTP API from the container: routes, authentication, problems, OpenAPI."""

from litestar import Litestar
from litestar.di import Provide

from infrastructure.container import Container
from interfaces.http.agents.routes import agents_routes
from interfaces.http.api_keys.routes import api_keys_routes
from interfaces.http.approvals.routes import approvals_routes
from interfaces.http.audit.routes import audit_routes
from interfaces.http.auth import authentication
from interfaces.http.bodies import MAX_JSON_BYTES, BodyDecoding
from interfaces.http.gateway_sessions.routes import gateway_sessions_routes
from interfaces.http.health import health_router
from interfaces.http.mcp_servers.routes import mcp_servers_routes
from interfaces.http.metrics import metrics_router, monitoring
from interfaces.http.model_providers.routes import model_providers_routes
from interfaces.http.oauth.routes import oauth_router
from interfaces.http.openapi import SECURITY_SCHEME, BodySchemas, EnumSchemas, front_door, openapi_config
from interfaces.http.organization.routes import organization_routes
from interfaces.http.organizations.routes import organizations_routes
from interfaces.http.problems import exception_handlers
from interfaces.http.query_names import only_declared_queries
from interfaces.http.requests import ApiRequest
from interfaces.http.routing import OwnRouter, dependencies, instance_of
from interfaces.http.runs.following import RunStreams, RunWaits
from interfaces.http.runs.frames import EventFrames
from interfaces.http.runs.routes import runs_routes
from interfaces.http.schedules.routes import schedules_routes
from interfaces.http.secrets.routes import secrets_routes
from interfaces.http.sources.routes import sources_routes
from interfaces.http.threads.routes import threads_routes
from interfaces.http.tools.routes import tools_routes
from interfaces.http.usage.routes import usage_routes
from interfaces.http.webhooks.routes import webhooks_routes
from interfaces.http.workflow_runs.following import WorkflowRunStreams
from interfaces.http.workflow_runs.routes import workflow_runs_routes
from interfaces.http.workflows.routes import workflows_routes


def create_api(container: Container, *, frames: EventFrames, heartbeat_s: float) -> Litestar:
    """The API below `/v1`, health, metrics and the OpenAPI document. `frames` are shared with
    other followers of runs. After `heartbeat_s` of silence a stream sends a comment."""
    start_run, watch_run = container.start_run(), container.watch_run()
    own = {
        "run_waits": RunWaits(start_run=start_run, watch_run=watch_run),
        "run_streams": RunStreams(
            start_run=start_run,
            watch_run=watch_run,
            get_run=container.get_run(),
            frames=frames,
            heartbeat_s=heartbeat_s,
        ),
        "workflow_run_streams": WorkflowRunStreams(
            watch=container.watch_workflow_run(), get_run=container.get_workflow_run(), heartbeat_s=heartbeat_s
        ),
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
            OwnRouter("/", route_handlers=routes, dependencies=dependencies(routes, container, own))
            for routes in slices
        ],
        middleware=[authentication(container.authenticate())],
        guards=[only_declared_queries],
        security=[{SECURITY_SCHEME: []}],
    )
    return Litestar(
        route_handlers=[v1, front_door, health_router(), metrics_router(), oauth_router()],
        dependencies={
            **_of_process(container),
            "finish_mcp_authorization": instance_of(container.finish_mcp_authorization()),
            "describe_oauth_client": instance_of(container.describe_oauth_client()),
        },
        request_class=ApiRequest,
        request_max_body_size=MAX_JSON_BYTES,
        exception_handlers=exception_handlers(),
        plugins=[BodyDecoding(), BodySchemas(), EnumSchemas()],
        openapi_config=openapi_config(container.app_version()),
        logging_config=None,
    )


def create_monitoring_app(container: Container) -> Litestar:
    """The application of a worker process: health and metrics only."""
    return Litestar(
        route_handlers=[health_router(), metrics_router()],
        dependencies=_of_process(container),
        request_class=ApiRequest,
        exception_handlers=exception_handlers(),
        openapi_config=None,
        logging_config=None,
    )


def _of_process(container: Container) -> dict[str, Provide]:
    return {"readiness": instance_of(container.readiness()), "monitoring": instance_of(monitoring(container))}
