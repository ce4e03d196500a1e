"""An MCP server over streamable HTTP with everything that the official conformance suite asks a
server for, of both generations: `python reference_server.py PORT`. What its tools are called, and
answer, is the suite's."""

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

server = MCPServer("reference")
a_tool = server.tool(description="Does what the scenario of the suite with its name asks for.")
a_prompt = server.prompt(description="Says what the scenario of the suite with its name asks for.")


def given(ctx: Context, key: str) -> Any:
    """The client's answer to the question of that name, if it was asked before."""
    return (ctx.input_responses or {}).get(key)


def asking(message: str, field: str) -> ElicitRequest:
    """A question with one text as its answer."""
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str) -> CreateMessageRequest:
    """A question to the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    """A text that comes with an answer."""
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@a_tool
def test_simple_text() -> str:
    return "This is a simple text response for testing."


@a_tool
def test_image_content() -> list[ImageContent]:
    return [ImageContent(type="image", data=PIXEL, mime_type="image/png")]


@a_tool
def test_audio_content() -> list[AudioContent]:
    return [AudioContent(type="audio", data=SOUND, mime_type="audio/wav")]


@a_tool
def test_embedded_resource() -> list[EmbeddedResource]:
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@a_tool
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    return [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}'),
    ]


@a_tool
def test_error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@a_tool
async def test_tool_with_progress(ctx: Context) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(progress=done, total=100, message=f"Completed step {done} of 100")
    return "done"


@a_tool
async def test_tool_with_logging(ctx: Context) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
    return "logged"


@a_tool
async def test_logging_tool(ctx: Context) -> str:
    return await test_tool_with_logging(ctx)


@a_tool
async def test_sampling(prompt: str, ctx: Context) -> str | InputRequiredResult:
    if (answer := given(ctx, "sampled")) is not None:
        return f"LLM response: {answer.content.text}"
    return InputRequiredResult(input_requests={"sampled": sampling(prompt)})


@a_tool
async def test_elicitation(message: str, ctx: Context) -> str | InputRequiredResult:
    return _asked(ctx, asking(message, "response"), "User response")


@a_tool
async def test_streaming_elicitation(ctx: Context) -> str | InputRequiredResult:
    return _asked(ctx, asking("Which?", "response"), "User response")


class Defaults(BaseModel):
    """SEP-1034: a default of each primitive type."""

    name: str = Field(default="John Doe")
    age: int = Field(default=30)
    score: float = Field(default=95.5)
    status: str = Field(default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = Field(default=True)


CHOICES = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)],
    },
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]},
    },
}


@a_tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str | InputRequiredResult:
    schema = Defaults.model_json_schema()
    properties = {
        name: {key: value for key, value in one.items() if key != "title"} for name, one in schema["properties"].items()
    }
    question = ElicitRequestFormParams(
        message="Who are you?", requested_schema={"type": "object", "properties": properties}
    )
    return _asked(ctx, ElicitRequest(params=question), "Elicitation completed")


@a_tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str | InputRequiredResult:
    question = ElicitRequestFormParams(
        message="Which ones?", requested_schema={"type": "object", "properties": CHOICES}
    )
    return _asked(ctx, ElicitRequest(params=question), "Elicitation completed")


def _asked(ctx: Context, question: ElicitRequest, words: str) -> str | InputRequiredResult:
    answer = given(ctx, "answer")
    if answer is None:
        return InputRequiredResult(input_requests={"answer": question})
    return f"{words}: action={answer.action}, content={json.dumps(answer.content or {})}"


@a_tool
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    answer = given(ctx, "user_name")
    if answer is None or not isinstance((answer.content or {}).get("name"), str):
        return InputRequiredResult(input_requests={"user_name": asking("What is your name?", "name")})
    return f"Hello, {answer.content['name']}!"


@a_tool
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    answer = given(ctx, "capital_question")
    if answer is None:
        return InputRequiredResult(input_requests={"capital_question": sampling("What is the capital of France?")})
    return str(answer.content.text)


@a_tool
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    answer = given(ctx, "client_roots")
    if answer is None:
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return ", ".join(str(root.uri) for root in answer.roots)


@a_tool
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    answer = given(ctx, "confirm")
    if answer is None or ctx.request_state != "confirming":
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        params = ElicitRequestFormParams(message="Please confirm", requested_schema=schema)
        return InputRequiredResult(input_requests={"confirm": ElicitRequest(params=params)}, request_state="confirming")
    return "state-ok"


@a_tool
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    return await test_input_required_result_request_state(ctx)


@a_tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    answers: Mapping[str, Any] = ctx.input_responses or {}
    if not {"user_name", "greeting", "client_roots"} <= set(answers):
        return InputRequiredResult(
            input_requests={
                "user_name": asking("What is your name?", "name"),
                "greeting": sampling("Generate a greeting"),
                "client_roots": ListRootsRequest(),
            },
            request_state="asking",
        )
    return f"{answers['greeting'].content.text} {answers['user_name'].content['name']}"


@a_tool
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    answers: Mapping[str, Any] = ctx.input_responses or {}
    if "step2" in answers and ctx.request_state == "second":
        return "done"
    if "step1" in answers and ctx.request_state == "first":
        color = asking("Step 2: What is your favorite color?", "color")
        return InputRequiredResult(input_requests={"step2": color}, request_state="second")
    name = asking("Step 1: What is your name?", "name")
    return InputRequiredResult(input_requests={"step1": name}, request_state="first")


@a_tool
async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    able = ctx.session.client_capabilities
    requests: dict[str, ElicitRequest | CreateMessageRequest | ListRootsRequest] = {}
    if able is not None and able.sampling is not None:
        requests["greeting"] = sampling("Generate a greeting")
    if able is not None and able.elicitation is not None:
        requests["user_name"] = asking("What is your name?", "name")
    return InputRequiredResult(input_requests=requests) if requests else "The client can do nothing of it."


@a_tool
async def test_missing_capability(ctx: Context) -> str:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        required: Mapping[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client with sampling.", required)
    return "The client has all that is needed."


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "Watched resource content"


@a_prompt
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


@a_prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@a_prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 (the suite's name)
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(content=resource), UserMessage(content="Please process the embedded resource above.")]


@a_prompt
def test_prompt_with_image() -> list[UserMessage]:
    image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [UserMessage(content=image), UserMessage(content="Please analyze the image above.")]


@a_prompt
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    answer = given(ctx, "user_context")
    if answer is None:
        question = asking("What context should the prompt use?", "context")
        return InputRequiredResult(input_requests={"user_context": question})
    return f"Context: {answer.content['context']}"


@server.completion()  # type: ignore[no-untyped-call,untyped-decorator]
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["paris", "park"], total=2, has_more=False)


if __name__ == "__main__":
    server.run("streamable-http", port=int(sys.argv[1]))
