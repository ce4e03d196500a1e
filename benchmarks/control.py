"""What control adds to a tool call: decision, ledger, audit entry and its seal, in CPU time of all
threads of a process.

`python -m benchmarks.control` prints it; `make bench` does so too. The steps are those that a run
commits for a turn with one call, on SQLite: with ledger and audit in them and without, in turns, so
that both meet the same machine. What is made in Python beside that, the decision and the entry, is
made many times and counted by itself.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from application.audit.seal_audit import SealAudit
from application.runs.ports import ClaimedRun
from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset import Toolset
from benchmarks.figures import Budget, held
from domain.json_value import JsonObject
from domain.policy.decision import rule_decision
from domain.policy.layers import PolicyLayers
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.audit_trail import tool_call_audit
from domain.runs.closing import tool_message
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from domain.runs.run_events import message_completed, tool_settled, turn_started
from domain.runs.step import Step
from domain.threads.message import TextContent
from domain.tools.result import ToolResult
from infrastructure.persistence.audit.keys import SqlSealKeys
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.schema.upgrade import upgrade
from infrastructure.runtime.system import SystemClock
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import (
    START,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool,
    a_tool_call,
    a_tool_use,
    an_agent,
    an_audit_event,
    an_organization,
)
from tests.contract.run_steps import finish_step, reply_step, run_number, start_and_claim
from tests.contract.sql_legs import opened
from tests.contract.stores import Stores

TOOL = "mcp__files__read"
ARGUMENTS: JsonObject = {"path": "/public/reports/2026/summary.md", "limit": 100, "encoding": "utf-8"}
RESULT = ToolResult.succeeded("A line of the report that the tool has read.\n" * 40)
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "encoding": {"type": "string"}},
    "required": ["path"],
}
THREADS = (a_thread_id(1), a_thread_id(2))
ROUNDS = 60
"""Pairs of runs; the median is of their differences."""
TURNS = 25
"""Of each run, with a call each."""
REPEATS = 20_000
"""Of what is made in Python alone."""
_CONTROL = Budget(what="CPU that control adds to a tool call", limit=0.3, unit="ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Milliseconds of CPU that each part adds to a call; `without` is what the two commits take
    without any."""

    decided: float
    entered: float
    stored: float
    sealed: float
    without: float

    @property
    def together(self) -> float:
        """All that is held against the budget."""
        return self.decided + self.entered + self.stored + self.sealed


def a_toolset() -> Toolset:
    """One tool, a rule of the organization for all tools of its server, one of the agent for the
    tool, allowlists."""
    agent = ToolRule(
        decision=Verdict.ALLOW,
        allowed_params=("path", "limit", "encoding"),
        arguments_schema={"properties": {"path": {"type": "string", "pattern": "^/public/"}}},
        max_calls=1_000_000,
    )
    layers = PolicyLayers(
        organization=ToolPolicies(rules=(("mcp__files__*", ToolRule(denied_params=("force",), timeout_s=60)),)),
        agent=ToolPolicies(rules=((TOOL, agent),)),
        organization_allowlist=("mcp__*",),
        agent_allowlist=("mcp__files__*",),
    )
    return Toolset(tools=(a_tool(TOOL, parameters=PARAMETERS),), policies=layers)


def a_call(run: Run, turn: int) -> ToolCall:
    """The call of a turn."""
    return a_tool_call(run_id=run.id, turn=turn, name=TOOL, params=ARGUMENTS)


def steps_of(run: Run, turn: int) -> tuple[Step, Step]:
    """What a run commits for a turn with one call: the reply with the call recorded, its outcome
    with the tool message."""
    call = a_call(run, turn)
    settled = a_settled_call(call, RESULT)
    message = tool_message(run, (settled,), at=START)
    assert message is not None
    entry = tool_call_audit(run, settled, decision=rule_decision(a_toolset().policy_of(TOOL)))
    return reply_step(run, call), Step(
        run=run,
        events=(
            tool_settled(settled, server="files"),
            message_completed(message),
            turn_started(turn + 1, at=START),
        ),
        messages=(message,),
        settled=(settled,),
        audit=(entry,),
    )


def uncontrolled(steps: tuple[Step, Step]) -> tuple[Step, Step]:
    """The same events and messages, of the same size, and nothing in the ledger and the audit."""
    reply, outcome = steps
    [message] = outcome.messages
    said = replace(message, content=(TextContent(text=message.tool_results[0].result),))
    return replace(reply, recorded=()), replace(outcome, messages=(said,), settled=(), audit=())


def cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """CPU of one repetition."""
    for _ in range(repeats // 10):
        work()
    began = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - began) * 1000 / repeats


def decision_ms() -> float:
    """Finding the tool, holding the arguments against its schema and policy, and deciding."""
    check, toolset = CheckToolCall(schemas=JsonSchemaValidator()), a_toolset()
    use, made = a_tool_use(a_call(run_number(1), 1)), {TOOL: 3}
    if check.check(use, toolset, made).answer is not None:
        raise SystemExit("the measured call is not allowed")
    return cpu_ms(lambda: check.check(use, toolset, made), REPEATS)


def entry_ms() -> float:
    """Making the audit entry, with the digest of the arguments."""
    run = run_number(1)
    call = a_call(run, 1)
    call, decision = a_settled_call(call, RESULT), rule_decision(a_toolset().policy_of(TOOL))
    return cpu_ms(lambda: tool_call_audit(run, call, decision=decision), REPEATS)


@asynccontextmanager
async def database() -> AsyncIterator[tuple[Stores, SealAudit]]:
    """A migrated SQLite file with an organization, an agent and a thread, and who seals its
    audit."""
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
        path = Path(folder) / "control.db"
        upgrade(f"sqlite:///{path}")
        sqlite = SqliteDatabase(path)
        async with opened(sqlite, an_organization()) as stores:
            await stores.agents.add(an_agent(), an_audit_event())
            for thread in THREADS:
                await stores.threads.add(a_thread(thread))
            keys = SqlSealKeys(database=sqlite, box=SecretBox(["the key of a benchmark"]))
            yield stores, SealAudit(seals=stores.audit_seals, keys=keys, clock=SystemClock())


async def commit(stores: Stores, claimed: ClaimedRun, steps: tuple[Step, Step]) -> float:
    """Milliseconds of CPU that committing a turn takes."""
    began = time.process_time()
    for step in steps:
        await stores.journal.commit(claimed.lease, step)
    return (time.process_time() - began) * 1000


async def one_round(stores: Stores, number: int) -> tuple[float, float]:
    """Two runs, turn by turn beside each other: milliseconds of CPU per turn with ledger and audit,
    and without."""
    both = [
        await start_and_claim(stores, run_number(2 * number + offset, thread_id=thread))
        for offset, thread in enumerate(THREADS)
    ]
    spent = [0.0, 0.0]
    for turn in range(1, TURNS + 1):
        steps = [steps_of(both[0].run, turn), uncontrolled(steps_of(both[1].run, turn))]
        for which in (0, 1) if turn % 2 else (1, 0):
            spent[which] += await commit(stores, both[which], steps[which])
    for claimed in both:
        await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    return spent[0] / TURNS, spent[1] / TURNS


async def stored_and_sealed() -> tuple[float, float, float]:
    """What ledger and audit add to the commits of a turn, what sealing an entry takes, and the
    commits without them."""
    async with database() as (stores, sealing):
        await one_round(stores, 1)
        rounds = [await one_round(stores, number) for number in range(2, ROUNDS + 2)]
        began = time.process_time()
        sealed = await sealing.sweep()
        seal_ms = (time.process_time() - began) * 1000 / sealed
    if sealed < ROUNDS * TURNS:
        raise SystemExit(f"only {sealed} entries were written")
    added = statistics.median(controlled - bare for controlled, bare in rounds)
    return added, seal_ms, statistics.median(bare for _, bare in rounds)


async def measure() -> Added:
    """Everything, once."""
    stored, sealed, without = await stored_and_sealed()
    return Added(decided=decision_ms(), entered=entry_ms(), stored=stored, sealed=sealed, without=without)


async def report() -> list[str]:
    """The lines of the report."""
    added = await measure()
    return [
        f"Control adds {added.together:.2f} ms of CPU to a tool call: deciding, with the tool's "
        f"schema and two layers of policy, {added.decided:.3f} ms;",
        f"making the audit entry {added.entered:.3f} ms; storing it and two writes of the ledger {added.stored:.3f} ms, in "
        f"two commits that take {added.without:.2f} ms without it;",
        f"sealing the entry afterwards {added.sealed:.3f} ms. Median of {ROUNDS} pairs of runs with {TURNS} calls "
        "(`python -m benchmarks.control`).",
        *held((_CONTROL, added.together)),
    ]


if __name__ == "__main__":
    print("\n".join(asyncio.run(report())))
