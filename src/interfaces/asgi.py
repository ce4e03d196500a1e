"""Builds the whole ASGI application: HTTP API, protocols of others, gateway and console behind one
request log."""

from litestar import Litestar

from application.gateway.authorization.check_authorization import SCOPE
from infrastructure.container import Container
from interfaces.console.entry import with_console
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
from interfaces.http.protocols_entry import with_protocols
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces

HEARTBEAT_S = 15.0


def create_app(
    container: Container, *, heartbeat_s: float = HEARTBEAT_S, stream_limits: StreamLimits | None = None
) -> Litestar:
    """The application over the container's use cases. The caller starts and stops what they
    need. After `heartbeat_s` of silence a stream sends a comment; `stream_limits` bound the
    gateway's streams."""
    frames = EventFrames()
    places = StreamPlaces.among(container.settings().max_connections)
    app = create_api(container, frames=frames, places=places, heartbeat_s=heartbeat_s)
    api = with_protocols(app.asgi_handler, container, places=places, heartbeat_s=heartbeat_s)
    api = with_console(api, container, frames=frames, places=places, heartbeat_s=heartbeat_s)
    gateway = _gateway_endpoint(container, limits=stream_limits or StreamLimits(heartbeat_s=heartbeat_s))
    request_log = RequestLog(
        meter=container.meters(), log_context=container.log_context(), slow_ms=container.settings().log_slow_ms
    )
    app.asgi_handler = request_log.around(with_gateway(api, gateway))
    return app


def _gateway_endpoint(container: Container, *, limits: StreamLimits) -> GatewayEndpoint:
    handshakes = container.client_handshakes()
    methods = GatewayMethods(
        list_tools=container.list_gateway_tools(),
        call_tool=container.call_gateway_tool(),
        contents=GatewayContents(
            list_contents=container.list_gateway_contents(), read_content=container.read_gateway_content()
        ),
        logs=GatewayLogs(handshakes=handshakes),
        subscriptions=ResourceSubscriptions(check=container.check_subscription(), handshakes=handshakes),
        tasks=GatewayTaskMethods(tasks=container.gateway_tasks()),
        version=container.app_version(),
    )
    return GatewayEndpoint(
        access=container.gateway_access(),
        methods=methods,
        clients=LegacyClients(handshakes=handshakes),
        streams=GatewayStreams(follow=container.subscribe_to_changes(), limits=limits),
        questions=GatewayQuestions(answer_question=container.answer_gateway_question()),
        cancellations=container.request_cancellations(),
        address=container.public_address(),
        # Scopes of another authorization server are its own.
        scope=None if container.settings().gateway_authorization_server else SCOPE,
    )
