"""A server of the official SDK whose tools ask for input in the middle of a call, in both
generations of the protocol: over stdio, or, `python asking_server.py PORT`, over SSE."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel


class Colour(BaseModel):
    colour: str


class Size(BaseModel):
    metres: int


def which_colour(thing: str) -> Elicit[Colour]:
    return Elicit(f"Which colour for the {thing}?", Colour)


def which_size(colour: Annotated[Colour, Resolve(which_colour)]) -> Elicit[Size]:
    return Elicit(f"How many metres of {colour.colour}?", Size)


def an_idea() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Think of a colour."))
    return Sample([message], max_tokens=10)


def the_roots() -> ListRoots:
    return ListRoots()


server = MCPServer("asking")


@server.tool()
def paint(thing: str, colour: Annotated[Colour, Resolve(which_colour)]) -> str:
    """One question."""
    return f"{thing}: {colour.colour}"


@server.tool()
def fence(
    thing: str, colour: Annotated[Colour, Resolve(which_colour)], size: Annotated[Size, Resolve(which_size)]
) -> str:
    """A second question after the first."""
    return f"{thing}: {size.metres} m of {colour.colour}"


@server.tool()
def imagine(idea: Annotated[CreateMessageResult, Resolve(an_idea)]) -> str:
    """Wants a model's answer."""
    return str(idea.content)


@server.tool()
def look(roots: Annotated[ListRootsResult, Resolve(the_roots)]) -> str:
    """Wants the file system's roots."""
    return str(roots.roots)


@server.tool()
async def visit(context: Context) -> str:
    """Wants a page to be visited, as servers of 2025-11-25 ask for it."""
    answer = await context.elicit_url("Sign in.", "https://example.org/sign-in", "el-1")
    return answer.action


if __name__ == "__main__":
    if len(sys.argv) > 1:  # a transport that has the older generations only
        server.run("sse", port=int(sys.argv[1]))
    server.run()
