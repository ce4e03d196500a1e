"""Clients, workers, crashes and time as rules of a state machine, over the real use cases and any
backend.

Rules never fail to apply: numbers choose among what there is, so that a story does not depend on
how far another came.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from application.runs.new_run import KEY_LIFETIME
from domain.ids import ThreadId
from domain.runs.run import MultitaskStrategy
from tests.builders import ORG, an_organization
from tests.contract.run_acts import RunActs
from tests.contract.run_harness import THREADS, StoredRunHarness
from tests.contract.stores import Leg

NUMBERS = st.integers(min_value=0, max_value=7)
STRATEGIES = st.sampled_from([*MultitaskStrategy, MultitaskStrategy.ENQUEUE, MultitaskStrategy.ENQUEUE])
STEPS = st.integers(min_value=1, max_value=7)
PLANS = st.lists(st.sampled_from([1, 2, 3, 4, 8, 16, 17, 18, 24, 31]), min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from([None, None, None, "one", "two"])


class RunMachine(RuleBasedStateMachine):
    """One story. Subclasses name the backend."""

    leg: Leg
    acts: RunActs

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.opened = AsyncExitStack()

    @initialize(plan=PLANS, steps=STEPS)
    def open_harness(self, plan: tuple[int, ...], steps: int) -> None:
        """A run is under way on one of two threads."""
        self.play(self._open())
        self.play(self.acts.start(THREADS[0], MultitaskStrategy.ENQUEUE, plan, None, ""))
        self.play(self.acts.take_up(steps))

    # --- rules: clients ---

    @rule(
        thread=st.sampled_from(THREADS),
        strategy=STRATEGIES,
        plan=PLANS,
        key=KEYS,
        body=st.sampled_from(["a", "b"]),
    )
    def start(
        self, thread: ThreadId, strategy: MultitaskStrategy, plan: tuple[int, ...], key: str | None, body: str
    ) -> None:
        """A new message on a thread."""
        self.play(self.acts.start(thread, strategy, plan, key, body))

    @rule(thread=st.sampled_from(THREADS), plan=PLANS)
    def say(self, thread: ThreadId, plan: tuple[int, ...]) -> None:
        """The same, plainly."""
        self.play(self.acts.start(thread, MultitaskStrategy.ENQUEUE, plan, None, ""))

    @rule(number=NUMBERS)
    def cancel(self, number: int) -> None:
        """Somebody stops a run."""
        self.play(self.acts.cancel(number))

    @rule(number=NUMBERS, count=NUMBERS)
    def give_results(self, number: int, count: int) -> None:
        """The client settles some of the displayed calls of a waiting run."""
        self.play(self.acts.give_results(number, count))

    @rule(number=NUMBERS, approve=st.booleans())
    def decide(self, number: int, approve: bool) -> None:
        """An operator decides about a pending approval."""
        self.play(self.acts.decide(number, approve=approve))

    @rule(thread=st.sampled_from(THREADS))
    def append(self, thread: ThreadId) -> None:
        """Somebody adds a message without a run."""
        self.play(self.acts.append(thread))

    # --- rules: workers ---

    @rule(number=NUMBERS)
    def ring(self, number: int) -> None:
        """A worker takes up a run, or finds that it is not to be had."""
        self.play(self.acts.ring(number))

    @rule(steps=STEPS)
    def take_up(self, steps: int) -> None:
        """Workers take up what is to be had and go on for some steps."""
        self.play(self.acts.take_up(steps))

    @rule(number=NUMBERS, steps=STEPS)
    def work(self, number: int, steps: int) -> None:
        """A worker goes on for some steps; it may be a frozen one that is revived."""
        self.play(self.acts.work(number, steps))

    @rule(number=NUMBERS)
    def work_on(self, number: int) -> None:
        """A worker goes on until its run ends or waits."""
        self.play(self.acts.work(number, 100))

    @rule(number=NUMBERS)
    def kill(self, number: int) -> None:
        """A worker dies where it stands: before or after a step is stored, after or before a call
        is sent."""
        self.play(self.acts.kill(number))

    @rule(number=NUMBERS, steps=STEPS)
    def crash(self, number: int, steps: int) -> None:
        """A worker dies after some steps; its lease lapses, and the next worker takes its run
        up."""
        self.play(self.acts.work(number, steps))
        self.play(self.acts.kill(number))
        self.play(self.acts.lose_leases(spared=number))
        self.play(self.acts.take_up(1))

    @rule(number=NUMBERS, steps=STEPS)
    def revive(self, number: int, steps: int) -> None:
        """A worker is frozen until another has its run, and then goes on as if nothing had
        happened."""
        self.play(self.acts.revive(number, steps))

    @rule(thread=st.sampled_from(THREADS), plan=st.sampled_from([(24,), (26, 18)]), approve=st.booleans())
    def talk_while_it_waits(self, thread: ThreadId, plan: tuple[int, ...], approve: bool) -> None:
        """The next message is there before everything is decided that a run waits for."""
        self.play(self.acts.start(thread, MultitaskStrategy.ENQUEUE, plan, None, ""))
        self.play(self.acts.take_up(30))
        self.play(self.acts.start(thread, MultitaskStrategy.ENQUEUE, (), None, ""))
        self.play(self.acts.decide(0, approve=approve))

    @rule(number=NUMBERS)
    def drain(self, number: int) -> None:
        """A worker is asked to hand its run back."""
        self.play(self.acts.drain(number))

    @rule()
    def sweep(self) -> None:
        """Somebody looks for runs that nobody executes."""
        self.play(self.acts.sweep())

    # --- rules: time ---

    @rule(spared=NUMBERS)
    def lose_leases(self, spared: int) -> None:
        """Leases lapse, but for one that is renewed; what is found is put back."""
        self.play(self.acts.lose_leases(spared))

    @rule()
    def expire_approvals(self) -> None:
        """Nobody decides for too long; workers renew their leases meanwhile."""
        self.play(self.acts.expire_approvals())

    @rule()
    def let_a_day_pass(self) -> None:
        """Keys of idempotency end."""
        self.play(self.acts.let_time_pass(KEY_LIFETIME.total_seconds()))

    # --- what must hold, always and in the end ---

    @invariant()
    def everything_holds(self) -> None:
        """What DESIGN calls invariants."""
        self.play(self.acts.check())

    def teardown(self) -> None:
        """Whatever happened, no run is stuck, and what is stored is whole."""
        try:
            if hasattr(self, "acts"):
                self.play(self.acts.end())
        finally:
            try:
                self.play(self._close())
            finally:
                self.runner.close()

    def play(self, act: Coroutine[object, object, None]) -> None:
        """On the machine's own loop."""
        self.runner.run(act)

    async def _open(self) -> None:
        stores = await self.opened.enter_async_context(self.leg.open(an_organization(ORG)))
        harness = StoredRunHarness(stores)
        await harness.open()
        self.acts = RunActs(harness)

    async def _close(self) -> None:
        if hasattr(self, "acts"):
            await self.acts.harness.close()
        await self.opened.aclose()
