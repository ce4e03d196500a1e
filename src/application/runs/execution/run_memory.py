"""What the runs of a worker hold in memory: their transcripts, within a budget."""

from application.system.memory_budget import Hold, MemoryBudget

_LEAST_SHARE, _LARGEST_SHARE = 64, 8
"""Parts of the budget between which a run holds as much as the last transcript until its own is
read and known."""


class RunMemory:
    """Rules:
    - A run is claimed once there is room for a transcript like the last one.
    - It then holds what its transcript really has, and more as that grows. A run alone is executed
      whatever its size.
    - A large transcript makes others wait only while it is in memory.
    - A run that a run of this worker called waits for no room: its caller holds room until it has
      the answer.
    - A worker that drains claims no more runs.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._last = 0
        self._is_draining = False

    async def room(self) -> "RunRoom | None":
        """Room for one run, once there is some; None once the worker drains. Leave it when the run
        has left the worker."""
        hold = await self._budget.hold(self._expected)
        if self._is_draining:
            hold.resize(0)
            return None
        return RunRoom(self, hold)

    def room_beside_caller(self) -> "RunRoom | None":
        """Room for a called run at once; None once the worker drains."""
        return None if self._is_draining else RunRoom(self, self._budget.open())

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
        self._size = 0

    def read(self, size: int) -> None:
        """The transcript was read; its size in bytes."""
        self.hold.resize(max(size, 1))
        self._size = size
        self._memory.measured(size)

    def grown(self, size: int) -> None:
        """The transcript may have grown to this size."""
        if size != self._size:
            self._size = size
            self.hold.resize(size)
