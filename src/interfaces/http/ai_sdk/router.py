"""Puts the routes of the AI SDK's protocol together."""

from infrastructure.container import Container
from interfaces.http.ai_sdk import routes
from interfaces.http.ai_sdk.chats import AiSdkChats
from interfaces.http.auth import authentication
from interfaces.http.chats.client_threads import ClientThreads
from interfaces.http.routing import OwnRouter, built_by, dependencies, routes_of
from interfaces.http.stream_places import StreamPlaces


def ai_sdk_router(container: Container, *, places: StreamPlaces, heartbeat_s: float) -> OwnRouter:
    """Below `/ai-sdk/v1`: keys and errors as everywhere."""
    chats = built_by(
        container,
        AiSdkChats,
        client_threads=built_by(container, ClientThreads),
        places=places,
        heartbeat_s=heartbeat_s,
    )
    handlers = routes_of(routes)
    return OwnRouter(
        "/ai-sdk/v1",
        route_handlers=handlers,
        dependencies=dependencies(handlers, container, {"ai_sdk_chats": chats}),
        middleware=[authentication(container.authenticate())],
        include_in_schema=False,
    )
