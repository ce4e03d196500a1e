"""AskForAccount: what happens to a call whose server needs an account of a person that is not
connected."""

from dataclasses import replace

from application.mcp.account_server import account_link, account_topic
from application.mcp.authorization import McpAuthorizer
from application.mcp.oauth_client import PublicAddress
from application.mcp.ports import McpFailure, McpFailureKind
from application.tools import failure_text
from application.tools.call_context import ToolCallContext
from application.tools.ports import InputAwaited
from domain.mcp.elicitation import ACCOUNT_QUESTION, MAX_ROUNDS, Elicitation, ElicitationAction, InputRound
from domain.mcp.server import Credentials, McpServer
from domain.tools.result import ToolResult


class CallWithoutAccount(Exception):
    """The call cannot be made with an account. Nothing was sent."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__("the call has no account")
        self.result = result


class AskForAccount:
    """Rules:
    - The person who acts is asked to visit the page where they connect their account. The call
      waits, and is sent once they have.
    - A client of the gateway is asked during the call, if it takes such questions.
    - A call for which no person acts (it was started by a key) fails, and says that a person must
      start it.
    - A person may decline; the call fails then.
    - Answers to this question are never sent to the server.
    """

    def __init__(self, *, address: PublicAddress, authorizer: McpAuthorizer) -> None:
        self._address = address
        self._authorizer = authorizer

    async def connected(
        self, failure: McpFailure, server: McpServer, context: ToolCallContext, given: InputRound | None
    ) -> bool:
        """Whether the account was connected meanwhile; False if the failure is not about an
        account. Raises InputAwaited with the question, CallWithoutAccount."""
        if failure.kind is not McpFailureKind.NEEDS_AUTH or server.config.credentials is not Credentials.PERSON:
            return False
        slug = server.config.slug
        if context.scope.person_id is None:
            raise CallWithoutAccount(failure_text.person_required(slug)) from failure
        number = 1 if given is None else given.number + 1
        if number > MAX_ROUNDS:
            raise CallWithoutAccount(failure_text.asked_too_often(MAX_ROUNDS)) from failure
        question = Elicitation(
            request_id=ACCOUNT_QUESTION,
            message=f"The MCP server {slug} is used {_how(server)}, to continue.",
            url=account_link(self._address, server),
        )
        acting = server.acting_for(context.scope.person_id)
        if context.connect is not None:
            before = await self._authorizer.account(acting)

            async def is_connected() -> bool:
                account = await self._authorizer.account(acting)
                return account is not None and account != before

            if await context.connect(question, account_topic(acting), is_connected):
                return True
        answers = {} if given is None else given.answers
        state = None if given is None else given.request_state
        awaited = InputRound(number=number, questions=(question,), answers=answers, request_state=state)
        raise InputAwaited(awaited) from failure


def _how(server: McpServer) -> str:
    if server.config.is_on_behalf:
        return "on your behalf. Sign in again on this page"
    if server.config.person_secrets:
        return f"with your own {', '.join(server.config.person_secrets)}. Give it on this page"
    return "with your own account. Connect it on this page"


def without_account(given: InputRound | None) -> InputRound | None:
    """What the server gets of the answers. Raises CallWithoutAccount if the person declined to
    connect their account."""
    answer = None if given is None else given.answers.get(ACCOUNT_QUESTION)
    if given is None or answer is None:
        return given
    if answer.get("action") != ElicitationAction.ACCEPT:
        raise CallWithoutAccount(failure_text.account_declined())
    return replace(
        given,
        questions=tuple(question for question in given.questions if question.request_id != ACCOUNT_QUESTION),
        answers={name: each for name, each in given.answers.items() if name != ACCOUNT_QUESTION},
    )
