"""An agent of the OpenAI Agents SDK over the gateway, in the environment `.venv-frameworks`.

    openai_agent.py URL TOKEN CALLS → {"tools": names that the model is shown, "results": what it is
    told, "answer": text}

The agent is that of the gateway's guide: its block is `helper.py` on PYTHONPATH.
CALLS is JSON, `[[tool, arguments], …]`: what the model asks for, one call a turn, before it says
that it is done.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from agents import Model, ModelResponse, Usage, set_tracing_disabled
from helper import answer
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class ScriptedModel(Model):
    """Says what it is told to, and keeps which tools it was shown."""

    def __init__(self, outputs: Iterator[Any]) -> None:
        self.shown: list[str] = []
        self.told: list[str] = []
        self._outputs = outputs

    async def get_response(self, *_: Any, input: Any, tools: list[Any], **__: Any) -> Any:
        self.shown += [tool.name for tool in tools if tool.name not in self.shown]
        self.told = [text_of(item["output"]) for item in input if item.get("type") == "function_call_output"]
        return ModelResponse(output=[next(self._outputs)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def outputs(calls: list[tuple[str, dict[str, Any]]]) -> Iterator[Any]:
    """The replies of the model."""
    for turn, (name, arguments) in enumerate(calls):
        yield ResponseFunctionToolCall(
            type="function_call", call_id=f"call-{turn}", name=name, arguments=json.dumps(arguments)
        )
    done = ResponseOutputText(type="output_text", text="Done.", annotations=[])
    yield ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=[done])


async def main(url: str, token: str, calls: str) -> None:
    """Run the agent to its end."""
    set_tracing_disabled(True)
    model = ScriptedModel(outputs(json.loads(calls)))
    said = await answer(model, "Go.", url, token)
    seen = {"tools": model.shown, "results": model.told, "answer": said}
    sys.stdout.write(json.dumps(seen))


def text_of(output: Any) -> str:
    """What a tool's output says: it is text, or a block, or several."""
    if isinstance(output, list):
        return "".join(map(text_of, output))
    return str(output["text"]) if isinstance(output, dict) else str(output)


asyncio.run(main(*sys.argv[1:]))
