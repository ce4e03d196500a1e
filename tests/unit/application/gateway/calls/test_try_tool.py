"""TryTool: a call of a person, in the session that they have with the agent, with what the server
says meanwhile."""

from pytest_mock import MockerFixture

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.clear_call import Waiting, pending_result
from application.gateway.calls.try_tool import MAX_NOTES, TriedTool, TryTool, TryToolCommand
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.log_messages import McpLogMessage
from application.mcp.ports import McpProgress, McpReply
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.log_level import LogLevel
from domain.tools.result import ToolResult
from tests.builders import KEY, ORG
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import ECHO, a_gateway_approval, a_gateway_session
from tests.refusals import refused

PERSON = Principal(organization_id=ORG, key_id=KEY, role=Role.RUNNER)
SESSION = a_gateway_session()
SAID = GatewayAnswer(
    result=ToolResult.succeeded("hi"), reply=McpReply(is_error=False, content=(), raw={"content": [{"text": "hi"}]})
)


async def tried(mocker: MockerFixture, call_tool: object) -> TriedTool:
    access = mocker.create_autospec(GatewayAccess, instance=True)
    access.of_principal.return_value = SESSION
    calling = mocker.create_autospec(CallGatewayTool, instance=True)
    calling.execute.side_effect = call_tool
    use_case = TryTool(access=access, call_tool=calling, clock=FixedClock())
    answer = await use_case.execute(
        TryToolCommand(principal=PERSON, agent="guide", tool=ECHO, arguments={"text": "hi"})
    )
    access.of_principal.assert_awaited_once_with(PERSON, "guide")
    return answer


async def test_the_call_is_made_in_the_session_of_the_person_and_answers_with_what_the_server_said(
    mocker: MockerFixture,
) -> None:
    seen: list[CallGatewayToolCommand] = []

    async def call(command: CallGatewayToolCommand) -> GatewayAnswer:
        seen.append(command)
        assert command.on_progress is not None
        assert command.logs is not None
        await command.on_progress(McpProgress(progress=1, total=2))
        await command.logs.tell(McpLogMessage(level=LogLevel.INFO, data="half"))
        return SAID

    answer = await tried(mocker, call)
    assert (seen[0].session, seen[0].name, seen[0].arguments) == (SESSION, ECHO, {"text": "hi"})
    assert (answer.result.text, answer.reply, answer.waiting) == ("hi", {"content": [{"text": "hi"}]}, None)
    assert answer.notes == (
        {"method": "notifications/progress", "params": {"progress": 1, "total": 2}},
        {"method": "notifications/message", "params": {"level": "info", "data": "half"}},
    )


async def test_a_call_that_requires_approval_returns_with_the_approval(mocker: MockerFixture) -> None:
    approval = a_gateway_approval()

    async def call(command: CallGatewayToolCommand) -> GatewayAnswer:
        assert command.as_task  # no request waits for the decision
        waiting = Waiting(approval=approval, request_state="sealed")
        return GatewayAnswer(result=pending_result(approval), waiting=waiting)

    answer = await tried(mocker, call)
    assert (answer.waiting, answer.reply, answer.result.error_code) == (approval, None, "approval_pending")


async def test_a_server_that_never_stops_talking_is_shown_in_part(mocker: MockerFixture) -> None:
    async def call(command: CallGatewayToolCommand) -> GatewayAnswer:
        assert command.on_progress is not None
        for step in range(MAX_NOTES + 5):
            await command.on_progress(McpProgress(progress=step))
        return SAID

    assert len((await tried(mocker, call)).notes) == MAX_NOTES


async def test_a_refusal_of_the_gateway_is_not_hidden(mocker: MockerFixture) -> None:
    with refused("agent_disabled"):
        await tried(mocker, ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled."))


async def test_who_may_not_run_cannot_open_the_session(mocker: MockerFixture) -> None:
    access = mocker.create_autospec(GatewayAccess, instance=True)
    access.of_principal.side_effect = ServiceError("forbidden", ErrorKind.FORBIDDEN, "Requires runner.")
    calling = mocker.create_autospec(CallGatewayTool, instance=True)
    viewer = Principal(organization_id=ORG, key_id=KEY, role=Role.VIEWER)
    with refused("forbidden"):
        await TryTool(access=access, call_tool=calling, clock=FixedClock()).execute(
            TryToolCommand(principal=viewer, agent="guide", tool=ECHO, arguments={})
        )
    calling.execute.assert_not_awaited()
