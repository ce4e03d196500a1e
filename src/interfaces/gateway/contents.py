"""Resources, prompts and completion of the servers behind the gateway (MCP server/resources,
server/prompts, server/utilities/completion)."""

from application.gateway.contents.content_names import ContentKind
from application.gateway.contents.list_contents import ListGatewayContents
from application.gateway.contents.read_content import ReadGatewayContent, ReadGatewayContentCommand
from application.mcp.contents import ContentMethod
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject
from interfaces.gateway.generations import Envelope
from interfaces.gateway.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError
from interfaces.gateway.pages import page_of
from interfaces.gateway.tool_shapes import cleaned_json, cleaned_meta

CONTENT_CAPABILITIES: JsonObject = {"completions": {}}
LISTS = {
    "resources/list": ContentKind.RESOURCES,
    "resources/templates/list": ContentKind.TEMPLATES,
    "prompts/list": ContentKind.PROMPTS,
}
READS = {
    method.value: method for method in (ContentMethod.READ_RESOURCE, ContentMethod.GET_PROMPT, ContentMethod.COMPLETE)
}
_OF_A_HOP = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})
_RESOURCE_NOT_FOUND = -32002
"""Until 2025-11-25; later versions use "invalid params" (MCP server/resources, error handling)."""


class GatewayContents:
    """Answers requests for contents. The generations differ only in the error for a missing
    resource."""

    def __init__(self, *, list_contents: ListGatewayContents, read_content: ReadGatewayContent) -> None:
        self._list_contents = list_contents
        self._read_content = read_content

    async def listed(self, session: GatewaySession, method: str, params: JsonObject) -> dict[str, object]:
        """A page of a list. Raises RpcError, ServiceError."""
        kind = LISTS[method]
        entries = await self._list_contents.execute(session, kind)
        page, following = page_of(entries, params.get("cursor"))
        answer: dict[str, object] = {kind.value: [_entry_json(entry) for entry in page]}
        return answer if following is None else {**answer, "nextCursor": following}

    async def read(
        self, session: GatewaySession, envelope: Envelope, method: str, params: JsonObject
    ) -> dict[str, object]:
        """One resource, prompt or completion. Requests of a server go to modern clients that can
        answer them. Raises RpcError, ServiceError."""
        command = ReadGatewayContentCommand(
            session=session,
            method=READS[method],
            params=params,
            accepts_input=envelope.is_modern and isinstance(envelope.capabilities.get("elicitation"), dict),
        )
        try:
            result = await self._read_content.execute(command)
        except ServiceError as error:
            raise content_error(error, params, is_modern=envelope.is_modern) from error
        answer = {key: cleaned_json(value) for key, value in result.items() if key not in _OF_A_HOP}
        if isinstance(meta := result.get("_meta"), dict) and (passed := cleaned_meta(meta)):
            answer["_meta"] = cleaned_json(passed)
        if envelope.is_modern and "resultType" in result:
            answer["resultType"] = result["resultType"]
        return answer


def _entry_json(entry: JsonObject) -> dict[str, object]:
    shape = {key: cleaned_json(value) for key, value in entry.items() if key != "_meta"}
    if isinstance(meta := entry.get("_meta"), dict) and (passed := cleaned_meta(meta)):
        shape["_meta"] = cleaned_json(passed)
    return shape


def content_error(error: ServiceError, params: JsonObject, *, is_modern: bool) -> Exception:
    """The error for missing contents and for refusals by policy. Other errors stay unchanged."""
    if error.code in ("resource_not_found", "prompt_not_found", "content_not_found"):
        uri = params.get("uri")
        if not isinstance(uri, str):
            return RpcError(INVALID_PARAMS, error.detail, data={"code": error.code})
        code = INVALID_PARAMS if is_modern else _RESOURCE_NOT_FOUND
        return RpcError(code, error.detail, data={"code": error.code, "uri": uri})
    if error.kind is ErrorKind.FORBIDDEN:
        return RpcError(INVALID_REQUEST, error.detail, data={"code": error.code})
    return error
