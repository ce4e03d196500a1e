"""CheckSubscription: which resources a client may watch."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.contents.content_sources import ContentSources, Sources
from application.gateway.subscriptions.check_subscription import MAX_URI, CheckSubscription, Watchable
from application.tools.check_tool_call import CheckToolCall
from domain.policy.rules import ToolRule, Verdict
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_server
from tests.gateway_builders import CANARY, a_gateway_session, a_gateway_toolset
from tests.refusals import refused, storage_away

SESSION, SERVER = a_gateway_session(), a_server()
URI, RESOURCES = "mcp+files:file:///notes", "mcp__files__resources"
CHECK = CheckToolCall(schemas=JsonSchemaValidator())


@pytest.fixture
def sources(mocker: MockerFixture) -> MockType:
    """A session that reaches the resources of the server `files`."""
    sources = mocker.create_autospec(ContentSources, instance=True)
    sources.of.return_value = Sources(session=SESSION, tools=a_gateway_toolset(canary=True), servers=(SERVER,))
    sources.owner_of_uri.return_value = (SERVER, "file:///notes")
    return sources


@pytest.mark.requirement("F5")
async def test_what_may_be_read_may_be_watched(sources: MockType) -> None:
    check = CheckSubscription(sources=sources, check=CHECK)
    assert await check.execute(SESSION, URI) == Watchable(server=SERVER, uri="file:///notes")


@pytest.mark.requirement("C2", "F5")
@pytest.mark.parametrize(
    "rule",
    [
        ToolRule(decision=Verdict.DENY),
        ToolRule(denied_params=("uri",)),
        ToolRule(decision=Verdict.REQUIRE_APPROVAL),
    ],
    ids=["denied", "denied parameter", "approval"],
)
async def test_what_may_not_be_read_or_not_without_an_approval_may_not_be_watched(
    sources: MockType, rule: ToolRule
) -> None:
    tools = a_gateway_toolset(rules={RESOURCES: rule})
    sources.of.return_value = Sources(session=SESSION, tools=tools, servers=(SERVER,))

    with refused("content_denied"):
        await CheckSubscription(sources=sources, check=CHECK).execute(SESSION, URI)


@pytest.mark.requirement("C4")
async def test_a_name_that_holds_a_canary_token_is_that_of_no_resource(sources: MockType) -> None:
    with refused("resource_not_found"):
        await CheckSubscription(sources=sources, check=CHECK).execute(SESSION, f"mcp+files:file:///{CANARY}")


async def test_a_resource_of_no_server_of_the_session_is_not_found(sources: MockType) -> None:
    sources.owner_of_uri.return_value = None

    with refused("resource_not_found"):
        await CheckSubscription(sources=sources, check=CHECK).execute(SESSION, URI)


async def test_a_name_that_is_too_long_is_not_looked_for(sources: MockType) -> None:
    with refused("resource_not_found"):
        await CheckSubscription(sources=sources, check=CHECK).execute(SESSION, "mcp+files:" + "x" * MAX_URI)

    sources.owner_of_uri.assert_not_awaited()


async def test_nothing_is_allowed_while_storage_is_away(sources: MockType) -> None:
    sources.of.side_effect = storage_away()

    with refused("storage_unavailable"):
        await CheckSubscription(sources=sources, check=CHECK).execute(SESSION, URI)
