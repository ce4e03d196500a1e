"""What a first agent can be made of: the short lists of `dragoman init` and of the console's first
page."""

from dataclasses import dataclass

from domain.json_value import JsonObject, JsonValue

SCRIPTED = "scripted"
KEYED_PROVIDERS = ("openai", "anthropic")
_INSTRUCTIONS = "Answer the user. Use your tools where they help."


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A choice by its name. `says` describes it."""

    name: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOffer(Offer):
    """An MCP server to install from a registry. `greeting` is a first message that fits it."""

    kind: str
    package: str
    greeting: str = "Hello! Which tools do you have?"

    def body(self) -> JsonObject:
        """What the API takes to register it."""
        return {"slug": self.name, "kind": self.kind, "package": self.package}


MODELS = (
    Offer(name=SCRIPTED, says="a script for trying out, without a key"),
    Offer(name="openai:gpt-5-mini", says="OpenAI; needs a key"),
    Offer(name="anthropic:claude-haiku-4-5", says="Anthropic; needs a key"),
)
SERVERS = (
    ServerOffer(
        name="time",
        says="the time in any time zone",
        kind="python",
        package="mcp-server-time",
        greeting="What time is it in Lisbon?",
    ),
    ServerOffer(name="fetch", says="reads web pages", kind="python", package="mcp-server-fetch"),
    ServerOffer(name="git", says="reads Git repositories", kind="python", package="mcp-server-git"),
    ServerOffer(
        name="memory",
        says="notes as a graph; needs Node.js",
        kind="npm",
        package="@modelcontextprotocol/server-memory",
    ),
)
NO_SERVER = Offer(name="none", says="no tools for now")


def server_offer(name: str) -> ServerOffer | None:
    """The offer of that name, if there is one."""
    return next((offer for offer in SERVERS if offer.name == name), None)


def greeting(server: ServerOffer | None) -> str:
    """The first message to an agent with this server."""
    return "Hello!" if server is None else server.greeting


def starter_agent(name: str, model: str, server: ServerOffer | None) -> JsonObject:
    """What the API takes to create the agent."""
    script = "scripted:time.yaml" if server is not None and server.name == "time" else "scripted:hello.yaml"
    slugs: list[JsonValue] = [] if server is None else [server.name]
    return {
        "name": name,
        "model": script if model == SCRIPTED else model,
        "instructions": _INSTRUCTIONS,
        "mcp_servers": slugs,
    }
