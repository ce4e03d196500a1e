"""A LangChain agent over the gateway, in the environment `.venv-frameworks`.

    langchain_agent.py URL TOKEN CALLS → {"tools": names that the model is shown, "results": what it
    is told, "answer": text}

The agent is that of the gateway's guide: its block is `chain.py` on PYTHONPATH.

CALLS is JSON, `[[tool, arguments], …]`: what the model asks for, one call a turn, before it says
that it is done.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from chain import agent_with_toolbox
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage


class ScriptedModel(GenericFakeChatModel):
    """Says what it is told to, and keeps which tools it was shown."""

    shown: list[str] = []  # noqa: RUF012 - a field of a pydantic model

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        self.shown.extend(tool.name for tool in tools if tool.name not in self.shown)
        return self


def turns(calls: list[tuple[str, dict[str, Any]]]) -> list[AIMessage]:
    """The replies of the model."""
    asked = [
        AIMessage(content="", tool_calls=[{"id": f"call-{turn}", "name": name, "args": arguments}])
        for turn, (name, arguments) in enumerate(calls)
    ]
    return [*asked, AIMessage(content="Done.")]


async def main(url: str, token: str, calls: str) -> None:
    """Run the agent to its end."""
    model = ScriptedModel(messages=iter(turns(json.loads(calls))))
    agent = await agent_with_toolbox(model, url, token)
    ended = await agent.ainvoke({"messages": [{"role": "user", "content": "Go."}]})
    results = [message.text for message in ended["messages"] if isinstance(message, ToolMessage)]
    seen = {"tools": model.shown, "results": results, "answer": ended["messages"][-1].text}
    sys.stdout.write(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
