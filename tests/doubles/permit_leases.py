"""Permits of processes in memory, and signals between them."""

from collections.abc import Callable

from application.system.ports import Clock
from application.system.shared_permits import EXPIRES_S, PermitSignals, SharedPermits


class InMemoryPermitLeases:
    """The `PermitLeases` port on one clock. Counts questions; raises `failure` if one is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[tuple[str, str], tuple[int, float]] = {}
        self.questions = 0
        self.failure: Exception | None = None

    def total(self, limited: str) -> int:
        """Permits that are given out."""
        now = self._clock.monotonic()
        return sum(amount for (of, _), (amount, until) in self._held.items() if of == limited and until >= now)

    async def lease(self, limited: str, holder: str, *, limit: int, held: int, wanted: int) -> int:
        self._ask()
        now = self._clock.monotonic()
        stored, until = self._held.pop((limited, holder), (0, now))
        kept = min(held, stored) if until >= now else 0
        total = kept + max(0, min(held + wanted - kept, limit - kept - self.total(limited)))
        if total:
            self._held[limited, holder] = (total, now + EXPIRES_S)
        return total

    async def renew(self, holder: str, limited: frozenset[str]) -> frozenset[str]:
        self._ask()
        now = self._clock.monotonic()
        valid = {key: amount for key, (amount, until) in self._held.items() if key[1] == holder and until >= now}
        renewed = {key: amount for key, amount in valid.items() if key[0] in limited}
        self._held.update({key: (amount, now + EXPIRES_S) for key, amount in renewed.items()})
        return frozenset(of for of, _ in renewed)

    async def withdraw(self, holder: str) -> None:
        self._ask()
        self._held = {key: held for key, held in self._held.items() if key[1] != holder}

    async def forget_expired(self) -> None:
        self._ask()
        now = self._clock.monotonic()
        self._held = {key: held for key, held in self._held.items() if held[1] >= now}

    def _ask(self) -> None:
        self.questions += 1
        if self.failure is not None:
            raise self.failure


class Neighbours:
    """Processes that hear each other's topics at once."""

    def __init__(self) -> None:
        self._ears: list[dict[str, Callable[[str], None]]] = []

    def process(self, leases: object, holder: str) -> SharedPermits:
        """A process among them."""
        return SharedPermits(leases=leases, holder=holder, signals=self.signals())  # type: ignore[arg-type]

    def signals(self) -> PermitSignals:
        """Of one more process."""
        return _Signals(self._ears)


class _Signals:
    def __init__(self, all_ears: list[dict[str, Callable[[str], None]]]) -> None:
        self._all_ears = all_ears
        self._own: dict[str, Callable[[str], None]] = {}
        all_ears.append(self._own)

    def wake(self, *topics: str) -> None:
        for ears in self._all_ears:
            for topic in topics:
                hear = ears.get(topic.partition(":")[0])
                if hear is not None and ears is not self._own:
                    hear(topic)

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        self._own[word] = hear
