"""Open circuit breakers in memory."""

from application.system.ports import Clock
from domain.ids import McpServerId
from infrastructure.mcp.wrappers.shared_breakers import OpenBreaker


class InMemoryBreakerStates:
    """The `BreakerStates` port on one clock. Raises `failure` if one is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[McpServerId, tuple[int, float]] = {}
        self.failure: Exception | None = None

    async def opened(self, server_id: McpServerId, breaker: OpenBreaker) -> None:
        self._ask()
        self._open[server_id] = (breaker.openings, self._clock.monotonic() + breaker.pause_s)

    async def closed(self, server_id: McpServerId) -> None:
        self._ask()
        self._open.pop(server_id, None)

    async def of(self, server_id: McpServerId) -> OpenBreaker | None:
        self._ask()
        if server_id not in self._open:
            return None
        openings, retry_at = self._open[server_id]
        return OpenBreaker(openings=openings, pause_s=max(0.0, retry_at - self._clock.monotonic()))

    async def probe(self, server_id: McpServerId, hold_s: float) -> bool:
        self._ask()
        now = self._clock.monotonic()
        openings, retry_at = self._open.get(server_id, (0, now))
        if retry_at > now:
            return False
        if openings:
            self._open[server_id] = (openings, now + hold_s)
        return True

    def _ask(self) -> None:
        if self.failure is not None:
            raise self.failure
