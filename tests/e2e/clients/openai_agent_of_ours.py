"""An agent of the OpenAI Agents SDK whose model is an agent of Dragoman, in the environment
`.venv-frameworks`.

    openai_agent_of_ours.py URL KEY MODEL WIRE → {"output": text, "called": cities}

WIRE is `responses` or `chat`. The agent has one function of its own program, `weather`.
"""

import asyncio
import json
import sys

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

called: list[str] = []


def weather(city: str) -> str:
    """The weather in a city."""
    called.append(city)
    return f"sun in {city}"


async def main(url: str, key: str, model: str, wire: str) -> None:
    set_tracing_disabled(disabled=True)
    async with AsyncOpenAI(base_url=url, api_key=key) as client:
        kind = OpenAIResponsesModel if wire == "responses" else OpenAIChatCompletionsModel
        agent = Agent(name="helper", model=kind(model=model, openai_client=client), tools=[function_tool(weather)])
        streamed = Runner.run_streamed(agent, "The weather?")
        async for _ in streamed.stream_events():
            pass
    # The functions of one turn are called side by side.
    sys.stdout.write(json.dumps({"output": streamed.final_output, "called": sorted(called)}))


asyncio.run(main(*sys.argv[1:]))
