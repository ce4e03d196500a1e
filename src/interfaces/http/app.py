"""Builds the HTTP API from the container: routes, authentication, problems, OpenAPI."""

from litestar import Litestar
from litestar.di import Provide

from infrastructure.container import Container
from interfaces.explorer.routes import EXPLORER
from interfaces.http import health
from interfaces.http.accounts import routes as accounts
from interfaces.http.agents import routes as agents
from interfaces.http.api_keys import routes as api_keys
from interfaces.http.approvals import routes as approvals
from interfaces.http.audit import routes as audit
from interfaces.http.auth import authentication
from interfaces.http.bodies import MAX_JSON_BYTES, BodyDecoding
from interfaces.http.gateway_authorization.router import gateway_authorization_router
from interfaces.http.gateway_sessions import routes as gateway_sessions
from interfaces.http.groups import routes as groups
from interfaces.http.identity_providers import routes as identity_providers
from interfaces.http.mcp_registries import routes as mcp_registries
from interfaces.http.mcp_servers import routes as mcp_servers
from interfaces.http.metrics import metrics_router, monitoring
from interfaces.http.model_providers import routes as model_providers
from interfaces.http.oauth import routes as oauth
from interfaces.http.openapi import SECURITY_SCHEME, BodySchemas, front_door, openapi_config, usual_address_of_document
from interfaces.http.organization import routes as organization
from interfaces.http.organizations import routes as organizations
from interfaces.http.problems import exception_handlers
from interfaces.http.protocol_router import protocol_router
from interfaces.http.query_names import only_declared_queries
from interfaces.http.queue import routes as queue
from interfaces.http.registry.router import registry_router
from interfaces.http.requests import ApiRequest
from interfaces.http.roles import routes as roles
from interfaces.http.routing import OwnRouter, dependencies, instance_of, routes_of
from interfaces.http.runs import routes as runs
from interfaces.http.runs.following import RunStreams, RunWaits
from interfaces.http.runs.frames import EventFrames
from interfaces.http.schedules import routes as schedules
from interfaces.http.scim import routes as scim
from interfaces.http.scim.entry import PATH as SCIM_PATH
from interfaces.http.scim.entry import scim_entry
from interfaces.http.secrets import routes as secrets
from interfaces.http.server_contents import routes as server_contents
from interfaces.http.sessions import routes as sessions
from interfaces.http.sources import routes as sources
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.threads import routes as threads
from interfaces.http.tools import routes as tools
from interfaces.http.usage import routes as usage
from interfaces.http.users import routes as users
from interfaces.http.view_schemas import EnumSchemas, ViewSchemas
from interfaces.http.webhooks import routes as webhooks
from interfaces.http.workflow_runs import routes as workflow_runs
from interfaces.http.workflow_runs.following import WorkflowRunStreams
from interfaces.http.workflows import routes as workflows

_SLICES = (
    agents,
    mcp_servers,
    server_contents,
    mcp_registries,
    tools,
    threads,
    sources,
    runs,
    approvals,
    organization,
    organizations,
    audit,
    api_keys,
    identity_providers,
    users,
    sessions,
    groups,
    roles,
    accounts,
    gateway_sessions,
    schedules,
    secrets,
    workflows,
    workflow_runs,
    model_providers,
    usage,
    queue,
    webhooks,
)


def create_api(container: Container, *, frames: EventFrames, places: StreamPlaces, heartbeat_s: float) -> Litestar:
    """The API below `/v1`, SCIM, the registry, health, metrics and the OpenAPI document. `frames`
    and `places` are shared with other followers of runs. After `heartbeat_s` of silence a stream
    sends a comment."""
    start_run, watch_run = container.start_run(), container.watch_run()
    own = {
        "run_waits": RunWaits(start_run=start_run, watch_run=watch_run),
        "run_streams": RunStreams(
            start_run=start_run,
            watch_run=watch_run,
            get_run=container.get_run(),
            frames=frames,
            places=places,
            heartbeat_s=heartbeat_s,
        ),
        "workflow_run_streams": WorkflowRunStreams(
            watch=container.watch_workflow_run(),
            get_run=container.get_workflow_run(),
            places=places,
            heartbeat_s=heartbeat_s,
        ),
    }
    v1 = OwnRouter(
        "/v1",
        route_handlers=[
            OwnRouter(
                "/",
                tags=[slice_.TAG.name],
                route_handlers=routes_of(slice_),
                dependencies=dependencies(routes_of(slice_), container, own),
            )
            for slice_ in _SLICES
        ],
        middleware=[authentication(container.authenticate(), impersonation=True)],
        before_request=only_declared_queries,
        security=[{SECURITY_SCHEME: []}],
    )
    return Litestar(
        route_handlers=[
            v1,
            registry_router(container),
            protocol_router(SCIM_PATH, container, {"scim_entry": scim_entry(container)}, scim, middleware=[]),
            front_door,
            usual_address_of_document,
            *EXPLORER,
            health.health_router(),
            metrics_router(),
            oauth.oauth_router(),
            gateway_authorization_router(container),
        ],
        dependencies={
            **_of_process(container),
            "finish_mcp_authorization": instance_of(container.finish_mcp_authorization()),
            "list_offered_providers": instance_of(container.list_offered_providers()),
            "describe_oauth_client": instance_of(container.describe_oauth_client()),
        },
        request_class=ApiRequest,
        request_max_body_size=MAX_JSON_BYTES,
        exception_handlers=exception_handlers(),
        plugins=[BodyDecoding(), BodySchemas(), EnumSchemas(), ViewSchemas()],
        openapi_config=openapi_config(
            container.app_version(), tags=[*(slice_.TAG for slice_ in _SLICES), health.TAG, oauth.TAG]
        ),
        logging_config=None,
    )


def create_monitoring_app(container: Container) -> Litestar:
    """The application of a worker process: health and metrics only."""
    return Litestar(
        route_handlers=[health.health_router(), metrics_router()],
        dependencies=_of_process(container),
        request_class=ApiRequest,
        exception_handlers=exception_handlers(),
        openapi_config=None,
        logging_config=None,
    )


def _of_process(container: Container) -> dict[str, Provide]:
    return {"readiness": instance_of(container.readiness()), "monitoring": instance_of(monitoring(container))}
