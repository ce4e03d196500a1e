"""Puts the routes of the AI SDK's protocol together."""

from infrastructure.container import Container
from interfaces.http.ai_sdk import routes
from interfaces.http.ai_sdk.chats import AiSdkChats
from interfaces.http.chats.client_threads import ClientThreads
from interfaces.http.protocol_router import protocol_router
from interfaces.http.routing import OwnRouter, built_by
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
    return protocol_router("/ai-sdk/v1", container, {"ai_sdk_chats": chats}, routes)
