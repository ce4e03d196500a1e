"""AppendMessage: add a message to a thread without running an agent."""

from dataclasses import dataclass

from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from application.threads.seen_thread import require_seen
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import MessageId, ThreadId
from domain.threads.message import Message, Role, TextContent, UserContent, is_blank


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMessageCommand:
    """`role` is user or assistant."""

    principal: Principal
    thread_id: ThreadId
    role: Role
    content: tuple[UserContent, ...]


class AppendMessage:
    """Rules:
    - Requires `runner`; the message is added at the end of the thread.
    - Text from both roles, images and files from users only. Only runs add tool uses and results,
      so every use has exactly one result.
    - A thread with an unfinished run accepts no message.

    Raises: ServiceError role_insufficient, message_invalid, thread_not_found, thread_busy,
    thread_quarantined.
    """

    def __init__(self, *, threads: ThreadStore, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._clock = clock
        self._ids = ids

    async def execute(self, command: AppendMessageCommand) -> Message:
        command.principal.require(Permission.RUNS_START)
        wrong = _violations(command)
        if wrong:
            raise invalid("message_invalid", "The message is not valid.", *wrong)
        message = Message(
            id=MessageId(self._ids.new("msg")),
            thread_id=command.thread_id,
            run_id=None,
            role=command.role,
            content=command.content,
            created_at=self._clock.now(),
        )
        await require_seen(self._threads, command.principal, command.thread_id)
        await self._threads.append(command.principal.organization_id, message)
        return message


def _violations(command: AppendMessageCommand) -> list[Violation]:
    wrong = []
    if command.role not in (Role.USER, Role.ASSISTANT):
        wrong.append(Violation(path="role", message="must be user or assistant"))
    if is_blank(command.content):
        wrong.append(Violation(path="content", message="must not be empty"))
    if command.role is Role.ASSISTANT:
        wrong += [
            Violation(path=f"content.{index}", message="an assistant's message takes text only")
            for index, part in enumerate(command.content)
            if not isinstance(part, TextContent)
        ]
    return wrong
