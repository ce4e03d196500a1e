"""What the runs of a worker hold in memory: their transcripts, within a budget."""

from collections.abc import Iterator, Sequence

from application.runs.execution.context_window import message_bytes
from application.system.memory_budget import Hold, MemoryBudget
from domain.threads.message import FileContent, ImageContent, Message, ToolResultContent

_LEAST_SHARE, _LARGEST_SHARE = 64, 8
"""Parts of the budget between which a run holds as much as the last transcript until its own is read and known."""


class RunMemory:
    """Rules:
    - A run is claimed once there is room for a transcript like the last one.
    - It then holds what its transcript really has, and more as that grows. A run alone is executed whatever its size.
    - A large transcript makes others wait only while it is in memory.
    - A worker that drains claims no more runs.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._last = 0
        self._is_draining = False

    async def room(self) -> "RunRoom | None":
        """Room for one run, once there is some; None once the worker drains. Leave it when the run has left the worker."""
        hold = await self._budget.hold(self._expected)
        if self._is_draining:
            hold.resize(0)
            return None
        return RunRoom(self, hold)

    def drain(self) -> None:
        """What waits for room waits no longer."""
        self._is_draining = True
        self._budget.admit()

    def measured(self, size: int) -> None:
        """The size of the transcript that was read last."""
        self._last = size

    def _expected(self) -> int:
        if self._is_draining:
            return 0
        limit = self._budget.limit
        return max(limit // _LEAST_SHARE, min(self._last, limit // _LARGEST_SHARE), 1)


class RunRoom:
    """The room of one run."""

    def __init__(self, memory: RunMemory, hold: Hold) -> None:
        self._memory = memory
        self.hold = hold
        self._size = self._count = 0

    def read(self, transcript: Sequence[Message]) -> None:
        """The transcript was read."""
        self.grown(transcript)
        self._memory.measured(self._size)

    def grown(self, transcript: Sequence[Message]) -> None:
        """The transcript may have grown."""
        if len(transcript) == self._count and self._count:
            return
        self._size += sum(map(_held_bytes, transcript[self._count :]))
        self._count = len(transcript)
        self.hold.resize(max(self._size, 1))


def _held_bytes(message: Message) -> int:
    """Bytes of a message in memory: for a request to a model images and files have estimated sizes, here their own."""
    attached = sum(len(attachment.data or "") for attachment in _attachments(message))
    return message_bytes(message) + attached


def _attachments(message: Message) -> Iterator[ImageContent | FileContent]:
    for part in message.content:
        if isinstance(part, ImageContent | FileContent):
            yield part
        elif isinstance(part, ToolResultContent):
            yield from part.attachments
