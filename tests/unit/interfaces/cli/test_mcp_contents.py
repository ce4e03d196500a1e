"""`dragoman mcp resources` and `dragoman mcp prompts`."""

import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.http.mcp_servers.views import McpServerView
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, problem, whole

pytestmark = pytest.mark.requirement("U6", "F5")
SERVER = "/v1/mcp-servers/files"
CONTENTS: JsonObject = {
    "resources": [{"uri": "file:///notes.txt", "name": "notes", "title": "Notes", "mimeType": "text/plain"}],
    "resource_templates": [{"uriTemplate": "file:///{path}", "name": "any", "description": "Any \x1b[8mfile."}],
    "prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}],
}


def a_service(*agents: JsonValue) -> FakeService:
    """A server with contents, and these agents; without them, the only one that has the server."""
    listed = agents or (
        agent_document(name="guide", mcp_servers=["files"]),
        agent_document(name="other"),
        agent_document(name="off", mcp_servers=["files"], enabled=False),
    )
    return (
        FakeService()
        .on("GET", SERVER, whole(McpServerView, {"slug": "files"}))
        .on("GET", "/v1/agents", {"data": [*listed], "next_cursor": None})
        .on("GET", f"{SERVER}/contents", CONTENTS)
    )


def test_resources_and_templates_are_listed_for_the_only_agent_that_has_the_server() -> None:
    service = a_service()
    told = service.run("mcp", "resources", "files")
    assert [line.split()[:2] for line in told.out.splitlines()[1:]] == [
        ["file:///notes.txt", "Notes"],
        ["file:///{path}", "any"],
    ]
    assert "\x1b" not in told.out
    assert dict(service.requests[-1].url.params) == {"agent": "guide"}
    document = service.run("mcp", "resources", "files", "--json").json
    assert document == {name: CONTENTS[name] for name in ("resources", "resource_templates")}


def test_a_resource_is_read_as_text_or_as_what_the_server_answered() -> None:
    parts: list[JsonValue] = [{"uri": "a", "text": "Buy milk"}, {"uri": "b", "blob": "AAAA"}]
    answer: JsonObject = {"result": {"contents": parts}}
    service = a_service().on("POST", f"{SERVER}/resources/read", answer)
    told = service.run("mcp", "resources", "files", "file:///notes.txt", "--agent", "guide")
    assert told.out.splitlines() == ["Buy milk", '{"uri": "b", "blob": "AAAA"}']
    assert "--json" in told.err
    assert service.sent("POST", f"{SERVER}/resources/read") == [{"agent": "guide", "uri": "file:///notes.txt"}]
    assert service.run("mcp", "resources", "files", "file:///notes.txt", "--json").json == answer


def test_prompts_are_listed_with_their_arguments_and_one_is_got() -> None:
    message: JsonValue = {"role": "user", "content": {"type": "text", "text": "Hello, Ada"}}
    service = a_service().on("POST", f"{SERVER}/prompts/get", {"result": {"messages": [message]}})
    assert service.run("mcp", "prompts", "files").out.splitlines()[1].split() == ["greet", "who", "[how]"]
    assert service.run("mcp", "prompts", "files", "--json").json == {"prompts": CONTENTS["prompts"]}
    told = service.run("mcp", "prompts", "files", "greet", "who=Ada", "how=a=b")
    assert told.out == "user:\nHello, Ada\n"
    wanted = {"agent": "guide", "name": "greet", "arguments": {"who": "Ada", "how": "a=b"}}
    assert service.sent("POST", f"{SERVER}/prompts/get") == [wanted]


@pytest.mark.parametrize("command", ["resources", "prompts"])
def test_the_agent_is_chosen_where_none_or_several_have_the_server(command: str) -> None:
    none = a_service(agent_document(name="guide", mcp_servers=[])).run("mcp", command, "files")
    assert (none.exit_code, "dragoman agent apply FILE" in none.err) == (2, True)
    two = [agent_document(name=name, mcp_servers=["files"]) for name in ("guide", "toolbox")]
    several = a_service(*two).run("mcp", command, "files")
    assert (several.exit_code, "--agent NAME" in several.err, "guide, toolbox" in several.err) == (2, True, True)


def test_mistakes_are_answered_and_nothing_is_sent() -> None:
    service = a_service()
    told = service.run("mcp", "prompts", "files", "greet", "Ada")
    assert (told.exit_code, "ARGUMENT=VALUE" in told.err) == (2, True)
    assert service.requests == []
    service.on("POST", f"{SERVER}/resources/read", problem(404, "resource_not_found", "There is no resource 'x'."))
    missing = service.run("mcp", "resources", "files", "x")
    assert (missing.exit_code, "There is no resource 'x'." in missing.err) == (1, True)
