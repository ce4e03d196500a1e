"""Puts the routes of OpenAI's protocols together."""

from infrastructure.container import Container
from interfaces.http.openai import conversation_routes, response_routes, routes
from interfaces.http.openai.chat import ChatCompletions
from interfaces.http.openai.chat_runs import ChatRuns
from interfaces.http.openai.client_calls import ClientCalls
from interfaces.http.openai.conversations import Conversations
from interfaces.http.openai.errors import openai_exception_handlers
from interfaces.http.openai.response_runs import ResponseRuns
from interfaces.http.openai.responses import Responses
from interfaces.http.protocol_router import protocol_router
from interfaces.http.routing import OwnRouter, built_by
from interfaces.http.stream_places import StreamPlaces

PATH = "/openai/v1"


def openai_router(container: Container, *, places: StreamPlaces, heartbeat_s: float) -> OwnRouter:
    """Below `/openai/v1`: keys as everywhere, errors in OpenAI's shape."""
    client_calls = built_by(container, ClientCalls)
    own = {
        "chat_completions": built_by(
            container,
            ChatCompletions,
            chat_runs=built_by(container, ChatRuns, client_calls=client_calls),
            places=places,
            heartbeat_s=heartbeat_s,
        ),
        "conversations": built_by(container, Conversations),
        "responses": built_by(
            container,
            Responses,
            response_runs=built_by(container, ResponseRuns, client_calls=client_calls),
            places=places,
            heartbeat_s=heartbeat_s,
        ),
    }
    modules = (routes, response_routes, conversation_routes)
    return protocol_router(PATH, container, own, *modules, exception_handlers=openai_exception_handlers())
