"""Routes of `/ai-sdk/v1`. The client builds the paths of a chat from that of its agent. They are
not in the OpenAPI document: their shapes are the AI SDK's."""

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from litestar.response.base import ASGIResponse

from interfaces.http.ai_sdk.chats import AiSdkChats
from interfaces.http.ai_sdk.schemas import ChatRequestBody
from interfaces.http.openai.chat import json_response
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest

ChatPath = Annotated[str, PathParameter(description="The client's id of a chat, or the id of a thread.")]


@post("/{agent:str}/chat", status_code=200)
async def answer_chat(
    request: ApiRequest, agent: AgentPath, data: JSONBody[ChatRequestBody], ai_sdk_chats: NamedDependency[AiSdkChats]
) -> ASGIResponse:
    """Requires the role runner."""
    return await ai_sdk_chats.answer(request.principal, agent, data)


@get("/{agent:str}/chat/{chat:str}")
async def list_chat_messages(
    request: ApiRequest, agent: AgentPath, chat: ChatPath, ai_sdk_chats: NamedDependency[AiSdkChats]
) -> ASGIResponse:
    """The messages that the front end begins with."""
    return json_response(await ai_sdk_chats.messages(request.principal, agent, chat))


@get("/{agent:str}/chat/{chat:str}/stream")
async def read_chat_again(
    request: ApiRequest,
    agent: AgentPath,
    chat: ChatPath,
    ai_sdk_chats: NamedDependency[AiSdkChats],
) -> ASGIResponse:
    """The newest answer, from its beginning."""
    return await ai_sdk_chats.again(request.principal, agent, chat)


@post("/{agent:str}/chat/{chat:str}/stop", status_code=204)
async def stop_chat(
    request: ApiRequest,
    agent: AgentPath,
    chat: ChatPath,
    ai_sdk_chats: NamedDependency[AiSdkChats],
) -> None:
    """Cancels the run. A runner cancels its own, an operator any."""
    await ai_sdk_chats.stop(request.principal, agent, chat)
