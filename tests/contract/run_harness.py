"""A harness over any backend whose workers can be stopped at every step they store: frozen, killed
there, or let on.

The use cases are the real ones; models, servers and the clock are in memory. What a worker must
never do (send a call that is not recorded, ask a model about calls without results) is noted in
`faults` where it happens, since inside a run an exception would only be a failed tool.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from application.approvals.check_decisions import CheckDecisions
from application.approvals.consents import Consents
from application.approvals.deciders import Deciders
from application.approvals.fire_timers import FireTimers
from application.identity.acting_people import ActingPeople
from application.mcp.ports import McpReply
from application.models.ports import ModelRequest
from application.runs.decide_run_approval import DecideRunApproval
from application.runs.ports import LeaseLost, StepOutcome
from application.runs.resume_run import ResumeRun
from application.runs.trace_ended_run import TraceEndedRun
from application.threads.append_message import AppendMessage
from domain.ids import RunId, WorkerId
from domain.policy.rules import OnUnknownOutcome, ToolPolicies, ToolRule, Verdict
from domain.runs.events import NewEvent
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCallState
from domain.runs.step import Step
from domain.threads.message import Message, Role
from domain.tools.capabilities import ToolType
from tests.approval_builders import no_gateway_approvals
from tests.builders import KEY, ORG, a_key, a_thread, a_thread_id, an_agent, an_audit_event, numbered
from tests.contract.run_changes import messages_of
from tests.contract.stores import Stores
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness, Worker

THREADS = (a_thread_id(1), a_thread_id(2))
APPROVAL_TTL_S = 120.0
WAIT_S = 30.0
"""Longer than anything takes here; a play that hangs fails by it."""

TOOLS = ("mcp__s__write", "mcp__s__guard", "mcp__s__put", "mcp__s__ask", ToolType.SEND_EMAIL.value)
"""By the bits of a plan's numbers: may not be repeated; the same, but a person decides after a
crash; may be repeated; needs an approval; is displayed."""
_POLICIES = ToolPolicies(
    rules=(
        (
            "mcp__s__guard",
            ToolRule(on_unknown_outcome=OnUnknownOutcome.REQUIRE_APPROVAL, approval_ttl_s=APPROVAL_TTL_S),
        ),
        ("mcp__s__put", ToolRule(idempotent=True)),
        ("mcp__s__ask", ToolRule(decision=Verdict.REQUIRE_APPROVAL, approval_ttl_s=APPROVAL_TTL_S)),
    )
)


def input_of(label: int, plan: tuple[int, ...]) -> str:
    """What a run is asked: its number, and for each turn the tools to call. The model does as it is
    told."""
    return json.dumps({"run": label, "plan": plan})


class SteppingJournal:
    """The `RunJournal` port of one worker, which stands still before and after each step until it
    is let on."""

    def __init__(self, stores: Stores, faults: list[str]) -> None:
        self._stores = stores
        self._faults = faults
        self.at_gate = asyncio.Event()
        self.heard = asyncio.Event()
        self.killed = False
        self.stale_writes = 0
        self._let_on = asyncio.Event()

    def let_on(self) -> None:
        """To the next stop."""
        self.at_gate.clear()
        self._let_on.set()

    def kill(self) -> None:
        """Nothing of what the worker was about to do happens any more."""
        self.killed = True
        self._let_on.set()

    async def commit(self, lease: Lease, step: Step) -> StepOutcome:
        """Store a step. Raises LeaseLost; then it looks that nothing was stored."""
        await self._stop_here()
        stored = await self._stores.runs.get(ORG, lease.run_id)
        is_stale = stored is None or stored.epoch != lease.epoch
        before = await everything(self._stores, lease.run_id) if is_stale else ()
        try:
            outcome = await self._stores.journal.commit(lease, step)
        except LeaseLost:
            self.stale_writes += 1
            if is_stale and await everything(self._stores, lease.run_id) != before:
                self._faults.append(f"a write of epoch {lease.epoch} changed {lease.run_id}")
            raise
        if is_stale:
            self._faults.append(f"a write of epoch {lease.epoch} into {lease.run_id} was taken")
        await self._stop_here()
        return outcome

    async def append(self, lease: Lease, events: tuple[NewEvent, ...]) -> None:
        """Store events alone."""
        if self.killed:
            raise asyncio.CancelledError
        await self._stores.journal.append(lease, events)

    async def cancel_requested_by(self, lease: Lease) -> str | None:
        """Who asked the worker to stop."""
        actor = await self._stores.journal.cancel_requested_by(lease)
        if actor is not None:
            self.heard.set()
        return actor

    async def _stop_here(self) -> None:
        self.at_gate.set()
        await self._let_on.wait()
        if self.killed:
            raise asyncio.CancelledError
        self._let_on.clear()


@dataclass(slots=True)
class Working:
    """A worker process that was rung for one run. `dead` once it was killed."""

    run_id: RunId
    worker: Worker
    journal: SteppingJournal
    task: "asyncio.Task[None]"
    dead: bool = False

    @property
    def is_alive(self) -> bool:
        """Whether it may still do something."""
        return not self.dead and not self.task.done()

    async def until_it_stops(self) -> None:
        """At its next step, or because it is done."""
        stopped = asyncio.create_task(self.journal.at_gate.wait())
        await asyncio.wait((stopped, self.task), timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
        assert stopped.done() or self.task.done(), f"the worker of {self.run_id} hangs"
        stopped.cancel()
        if self.task.done():
            self.task.result()

    async def let_on(self) -> None:
        """One stop further."""
        if self.is_alive:
            self.journal.let_on()
            await self.until_it_stops()

    async def finish(self) -> None:
        """As far as it goes by itself."""
        for _ in range(200):
            if not self.is_alive:
                return
            await self.let_on()
        raise AssertionError(f"the worker of {self.run_id} does not come to an end")

    async def kill(self) -> None:
        """At this very place."""
        self.dead = True
        self.task.cancel()
        await asyncio.wait((self.task,), timeout=WAIT_S)
        assert self.task.done(), f"the worker of {self.run_id} cannot be killed"
        self.journal.kill()
        await asyncio.sleep(0)

    async def hear(self) -> None:
        """Wait until the request to stop has reached it."""
        async with asyncio.timeout(WAIT_S):
            heard = asyncio.create_task(self.journal.heard.wait())
            await asyncio.wait((heard, self.task), return_when=asyncio.FIRST_COMPLETED)
            heard.cancel()
            await asyncio.sleep(0)


@dataclass(slots=True)
class Seen:
    """What happened outside: `sends` by tool call, `prompts` the texts users said in each request,
    by its run."""

    sends: Counter[str] = field(default_factory=Counter)
    prompts: list[tuple[RunId, tuple[str, ...]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class StoredRunHarness(RunHarness):
    """The harness with everything about runs stored in a backend of the contract suites."""

    def __init__(self, stores: Stores) -> None:
        self.seen = Seen()
        tools = {name: InMemoryTool(answer=self._send) for name in ("write", "guard", "put", "ask")}
        agent = an_agent(tools=(ToolType.SEND_EMAIL,), mcp_servers=("s",))
        agent = replace(agent, config=replace(agent.config, tool_policies=_POLICIES))
        super().__init__(self._model, servers={"s": InMemoryMcpServer(tools=tools)}, agent=agent)
        self.stores = stores
        self.state.keys[KEY] = a_key()
        # Ports the harness offers under the types of its own adapters.
        replaced: Mapping[str, object] = {
            "agents": stores.agents,
            "organizations": stores.organizations,
            "runs": stores.runs,
            "leases": stores.leases,
            "usage": stores.reservations,
            "approvals": stores.approvals,
            "wakeups": stores.wakeups,
        }
        for name, adapter in replaced.items():
            setattr(self, name, adapter)
        self.trace_ended = TraceEndedRun(runs=stores.runs, agents=stores.agents, tracer=self.tracer)
        self.resume_run = ResumeRun(
            runs=stores.runs,
            reader=stores.runs,
            queue=self.queue,
            decisions=CheckDecisions(
                approvals=stores.approvals,
                agents=stores.agents,
                servers=self.servers,
                catalog=self.catalog,
                check=self.check,
                deciders=Deciders(
                    people=ActingPeople(memberships=stores.organization_groups, identities=stores.identity),
                    user_access=stores.user_access,
                ),
                consents=Consents(approvals=stores.approvals),
            ),
            agents=stores.agents,
            servers=self.servers,
            schemas=self.schemas,
            box=self.box,
            clock=self.clock,
        )
        self.append_message = AppendMessage(threads=stores.threads, clock=self.clock, ids=self.ids)
        self.fire_timers = FireTimers(
            timers=stores.timers,
            approvals=stores.approvals,
            of_run=DecideRunApproval(resume_run=self.resume_run, runs=stores.runs, queue=self.queue, clock=self.clock),
            of_session=no_gateway_approvals(),
            wakeups=stores.wakeups,
            clock=self.clock,
        )
        self.workers: list[Working] = []

    async def open(self) -> None:
        """The agent, two threads, and the catalog of the server."""
        await self.stores.agents.add(self.agent, an_audit_event())
        for thread_id in THREADS:
            await self.stores.threads.add(a_thread(thread_id))
        await self.warm_up()

    async def ring(self, run_id: RunId) -> Working:
        """Have a new worker take the run up, as far as its first step."""
        journal = SteppingJournal(self.stores, self.seen.faults)
        worker = self.new_worker(WorkerId(numbered("wrk", len(self.workers) + 1)), journal=journal)
        working = Working(run_id=run_id, worker=worker, journal=journal, task=worker.begin(run_id))
        self.workers.append(working)
        await working.until_it_stops()
        return working

    async def close(self) -> None:
        """Kill who is left."""
        for working in self.workers:
            if working.is_alive:
                await working.kill()

    # --- what models and servers do, and notice ---

    def _model(self, request: ModelRequest) -> ModelTurn:
        self.seen.faults += unanswered_in(request)
        said = [message.text for message in request.messages if message.role is Role.USER]
        self.seen.prompts.append((request.run_id, tuple(said)))
        plan = json.loads(said[-1])["plan"]
        if request.turn > len(plan):
            return says()
        chosen = [name for bit, name in enumerate(TOOLS) if plan[request.turn - 1] >> bit & 1]
        return ModelTurn(
            text="…", calls=tuple(call(name, EMAIL if name == TOOLS[-1] else {"turn": request.turn}) for name in chosen)
        )

    async def _send(self, invocation: Invocation) -> McpReply:
        call_id = invocation.meta["dragoman/idempotency-key"]
        self.seen.sends[call_id] += 1
        if invocation.scope.run_id is None:
            raise ValueError("a call of no run")
        calls = await self.stores.runs.tool_calls(ORG, invocation.scope.run_id)
        states = [entry.state for entry in calls if entry.id == call_id]
        if states != [ToolCallState.RECORDED]:
            self.seen.faults.append(f"{call_id} was sent while it was {states}")
        return text_reply(f"done {call_id}")


def unanswered_in(request: ModelRequest) -> list[str]:
    """Tool uses of a prompt that do not have exactly one result in the message after theirs."""
    faults: list[str] = []
    followed: list[tuple[Message, Message | None]] = list(
        zip(request.messages, (*request.messages[1:], None), strict=True)
    )
    for message, after in followed:
        asked = [use.id for use in message.tool_uses]
        answered = [] if after is None else [result.tool_id for result in after.tool_results]
        if asked and asked != answered:
            faults.append(f"{request.run_id} is asked about {asked} with results of {answered}")
    return faults


async def everything(stores: Stores, run_id: RunId) -> tuple[object, ...]:
    """All that is stored of a run."""
    return (
        await stores.runs.get(ORG, run_id),
        await stores.runs.events(ORG, run_id, after_seq=0, limit=1000),
        await messages_of(stores.runs, ORG, run_id),
        await stores.runs.tool_calls(ORG, run_id),
    )
