"""Tools that the client of a run defines and settles itself."""

import re
from dataclasses import dataclass, field

from domain.errors import ErrorKind, ServiceError, Violation, invalid
from domain.json_value import JsonObject, canonical_json
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

MAX_CLIENT_TOOLS = 128
MAX_CLIENT_BYTES = 256 * 1024
"""Tools of the client and what answers repeat of its request, together as JSON: each read of the
run loads both."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _no_arguments() -> JsonObject:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTool:
    """A function of the client: the model may call it, and the run waits for the client's result.
    `parameters` is the JSON Schema of the arguments."""

    name: str
    description: str = ""
    parameters: JsonObject = field(default_factory=_no_arguments)

    def as_tool(self) -> Tool:
        return Tool(name=self.name, type=ToolType.CLIENT_TOOL, description=self.description, parameters=self.parameters)


def require_valid(tools: tuple[ClientTool, ...]) -> None:
    """Raises INVALID `client_tools_invalid`: too many, a name that models do not take, or one given
    twice."""
    names = [tool.name for tool in tools]
    wrong = [
        Violation(path=f"tools.{index}.name", message=message)
        for index, name in enumerate(names)
        if (message := _fault(name, names[:index])) is not None
    ]
    if len(tools) > MAX_CLIENT_TOOLS:
        wrong.append(Violation(path="tools", message=f"has more than {MAX_CLIENT_TOOLS} tools"))
    if wrong:
        raise invalid("client_tools_invalid", "The tools of the client are not valid.", *wrong)


def require_fitting(tools: tuple[ClientTool, ...], request: JsonObject | None) -> None:
    """Raises TOO_LARGE `client_request_too_large`: more than `MAX_CLIENT_BYTES`."""
    texts = (canonical_json([tool.name, tool.description, tool.parameters]) for tool in tools)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in (*texts, canonical_json(request)))
    if size > MAX_CLIENT_BYTES:
        detail = (
            f"The tools and the parts of the request that answers repeat have {size} bytes as JSON; {MAX_CLIENT_BYTES} are "
            "allowed. Send fewer or shorter tools, or narrow the tools of MCP servers with `allowed_tools`."
        )
        raise ServiceError("client_request_too_large", ErrorKind.TOO_LARGE, detail, extra={"param": "tools"})


def _fault(name: str, before: list[str]) -> str | None:
    if _NAME.fullmatch(name) is None:
        return "must match [A-Za-z0-9_-]{1,64}"
    return "is given twice" if name in before else None
