"""Resources and prompts of a server, listed and read under the policy of an agent: by the API and
in the console."""

from typing import Any

import pytest

from application.mcp.contents import ContentMethod
from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.gateway_caller import Json, actions, an_agent
from tests.integration.http.service import Service, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("U6", "F5")
CONTENTS: dict[ContentMethod, Json] = {
    ContentMethod.RESOURCES: {"resources": [{"uri": "file:///notes.txt", "name": "<notes>", "mimeType": "text/plain"}]},
    ContentMethod.TEMPLATES: {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "any file"}]},
    ContentMethod.READ_RESOURCE: {"contents": [{"uri": "file:///notes.txt", "text": "Buy <milk>"}]},
    ContentMethod.PROMPTS: {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]},
    ContentMethod.GET_PROMPT: {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello, Ada"}}]},
}
PATH = "/v1/mcp-servers/files"
DENIED = {"tool_policies": {"mcp__files__resources": {"decision": "deny"}, "mcp__files__prompts": {"decision": "deny"}}}


async def with_contents(service: Service, **settings: Any) -> str:
    """The id of an agent that has the server `files`."""
    tools = {"echo": InMemoryTool(answer=text_reply("hi"))}
    service.connections.servers["files"] = InMemoryMcpServer(tools=tools, contents=CONTENTS)
    return str((await an_agent(service, **settings))["id"])


async def test_a_server_lists_and_answers_under_its_own_names_and_it_is_audited(service: Service) -> None:
    await with_contents(service)
    runner = token_of(Role.RUNNER)
    listed = await service.call("GET", f"{PATH}/contents?agent=toolbox", token=runner)
    assert listed.json() == {
        "resources": CONTENTS[ContentMethod.RESOURCES]["resources"],
        "resource_templates": CONTENTS[ContentMethod.TEMPLATES]["resourceTemplates"],
        "prompts": CONTENTS[ContentMethod.PROMPTS]["prompts"],
    }
    wanted = {"agent": "toolbox", "uri": "file:///notes.txt"}
    read = await service.call("POST", f"{PATH}/resources/read", json=wanted, token=runner)
    [content] = read.json()["result"]["contents"]
    assert (content["text"], content["uri"]) == ("Buy <milk>", "mcp+files:file:///notes.txt")
    prompt = {"agent": "toolbox", "name": "greet", "arguments": {"who": "Ada"}}
    got = await service.call("POST", f"{PATH}/prompts/get", json=prompt, token=runner)
    assert got.json()["result"]["messages"][0]["content"]["text"] == "Hello, Ada"
    assert service.connections.asked[-1].params == {"name": "greet", "arguments": {"who": "Ada"}}
    assert (await actions(service)).count(AuditAction.TOOL_EXECUTED) == 2


async def test_policy_and_bad_input_are_refused(service: Service) -> None:
    await with_contents(service, **DENIED)
    problem_of(await service.call("GET", f"{PATH}/contents?agent=toolbox"), 403, "content_denied")
    problem_of(await service.call("GET", f"{PATH}/contents"), 422, "parameters_invalid")
    problem_of(await service.call("GET", f"{PATH}/contents?agent=nobody"), 404, "agent_not_found")
    wanted = {"agent": "toolbox", "uri": "file:///notes.txt"}
    problem_of(await service.call("POST", f"{PATH}/resources/read", json=wanted), 404, "resource_not_found")
    problem_of(await service.call("POST", f"{PATH}/prompts/get", json={"agent": "toolbox"}), 422, "body_invalid")
    assert AuditAction.TOOL_EXECUTED not in await actions(service)


async def test_the_console_has_forms_for_templates_and_arguments(service: Service) -> None:
    agent = await with_contents(service)
    browser = await signed_in(service, token_of(Role.RUNNER))
    server = (await browse(service, "GET", "/console/servers/files", headers=browser)).text
    assert 'href="/console/servers/files/contents"' in server
    page = (await browse(service, "GET", "/console/servers/files/contents", headers=browser)).text
    assert "&lt;notes&gt;" in page
    assert 'value="file:///{path}"' in page
    assert page.count('name="argument-0"') == 2
    form = {"agent": agent, "uri": "file:///{path}", "template": "yes", "argument-0": "a b/c"}
    read = await browse(service, "POST", "/console/servers/files/resources/read", headers=browser, data=form)
    assert "Buy &lt;milk&gt;" in read.text
    assert service.connections.asked[-1].params == {"uri": "file:///a%20b%2Fc"}
    form = {"agent": agent, "name": "greet", "argument-0": "Ada"}
    got = await browse(service, "POST", "/console/servers/files/prompts/get", headers=browser, data=form)
    assert "Hello, Ada" in got.text
    assert service.connections.asked[-1].params == {"name": "greet", "arguments": {"who": "Ada"}}
    form["name"] = "unknown"
    assert (
        await browse(service, "POST", "/console/servers/files/prompts/get", headers=browser, data=form)
    ).status_code == 404


async def test_the_page_says_why_nothing_can_be_read(service: Service) -> None:
    await with_contents(service, **DENIED)
    runner = await signed_in(service, token_of(Role.RUNNER))
    denied = (await browse(service, "GET", "/console/servers/files/contents", headers=runner)).text
    assert "The agent offers no resources and prompts of this server" in denied
    viewer = await signed_in(service, token_of(Role.VIEWER))
    assert (
        "requires the role runner"
        in (await browse(service, "GET", "/console/servers/files/contents", headers=viewer)).text
    )
    await service.call("PATCH", "/v1/agents/toolbox", json={"enabled": False})
    assert "no enabled agent" in (await browse(service, "GET", "/console/servers/files/contents", headers=runner)).text
