"""LangChain's ChatOpenAI with agents of Dragoman as its models, in the environment
`.venv-frameworks`.

langchain_chat_of_ours.py URL KEY → {"told": text, "streamed": text, "shaped": object, "output":
text, "called": cities}
"""

import json
import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

CITY = {"title": "City", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
called: list[str] = []


def weather(city: str) -> str:
    """The weather in a city."""
    called.append(city)
    return f"sun in {city}"


def main(url: str, key: str) -> None:
    def model(name: str) -> ChatOpenAI:
        return ChatOpenAI(base_url=url, api_key=key, model=name)

    told = model("told").invoke("hello")
    streamed = "".join(str(chunk.content) for chunk in model("told").stream("hello"))
    shaped = model("shaped").with_structured_output(CITY).invoke("Where?")
    agent = create_agent(model("asks"), [weather])
    output = agent.invoke({"messages": [{"role": "user", "content": "The weather?"}]})["messages"][-1].content
    report = {"told": told.content, "streamed": streamed, "shaped": shaped, "output": output}
    report["called"] = sorted(called)  # the functions of one turn are called side by side
    sys.stdout.write(json.dumps(report))


main(*sys.argv[1:])
