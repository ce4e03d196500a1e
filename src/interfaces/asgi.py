"""Builds the whole ASGI application: HTTP API, gateway and console behind one request log."""

from litestar import Litestar

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
from interfaces.http.access_log import RequestLog
from interfaces.http.app import create_api
from interfaces.http.metrics import Monitoring
from interfaces.http.runs.frames import EventFrames
from interfaces.http.use_cases import Readiness, UseCases

HEARTBEAT_S = 15.0


def create_app(
    use_cases: UseCases,
    *,
    readiness: Readiness,
    request_log: RequestLog,
    monitoring: Monitoring,
    sessions: ConsoleSessions,
    clock: Clock,
    version: str,
    heartbeat_s: float = HEARTBEAT_S,
    stream_limits: StreamLimits | None = None,
) -> Litestar:
    """The application. The caller starts and stops what the use cases need.

    `monitoring` answers /metrics, `sessions` are those of the console, `request_log` logs and counts requests, `stream_limits` are those
    of the gateway's streams; `version` is shown in the OpenAPI document; `heartbeat_s` is the silence after which a stream
    sends a comment.
    """
    frames = EventFrames()
    app = create_api(
        use_cases,
        readiness=readiness,
        monitoring=monitoring,
        frames=frames,
        version=version,
        heartbeat_s=heartbeat_s,
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
    limits = stream_limits or StreamLimits(heartbeat_s=heartbeat_s)
    gateway = _gateway_endpoint(use_cases, version=version, limits=limits)
    app.asgi_handler = request_log.around(with_gateway(api, gateway, use_cases.public_address))
    return app


def _gateway_endpoint(use_cases: UseCases, *, version: str, limits: StreamLimits) -> GatewayEndpoint:
    handshakes = use_cases.client_handshakes
    methods = GatewayMethods(
        list_tools=use_cases.list_gateway_tools,
        call_tool=use_cases.call_gateway_tool,
        contents=GatewayContents(
            list_contents=use_cases.list_gateway_contents, read_content=use_cases.read_gateway_content
        ),
        logs=GatewayLogs(handshakes=handshakes),
        subscriptions=ResourceSubscriptions(check=use_cases.check_subscription, handshakes=handshakes),
        tasks=GatewayTaskMethods(tasks=use_cases.gateway_tasks),
        version=version,
    )
    return GatewayEndpoint(
        access=use_cases.gateway_access,
        methods=methods,
        clients=LegacyClients(handshakes=handshakes),
        streams=GatewayStreams(follow=use_cases.follow_changes, limits=limits),
        questions=GatewayQuestions(answer_question=use_cases.answer_gateway_question),
        cancellations=use_cases.request_cancellations,
        address=use_cases.public_address,
    )
