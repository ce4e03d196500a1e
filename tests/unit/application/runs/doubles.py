"""What stands around a run in the harness, and how a model's turns are written down."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from application.mcp.ports import McpReply
from application.models.ports import RequestedCall
from application.tools.ports import NativeToolContext, NativeToolOutput
from application.tracing.ports import GenerationRecord, ToolCallRecord
from domain.agents.agent import Agent
from domain.ids import OrganizationId, RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent
from domain.runs.model_settings import ModelSettings
from domain.runs.run import Run
from domain.runs.usage import ModelUsage
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from tests.builders import a_tool
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.scripted_model import Gate, ModelTurn

NativeAnswer = Callable[[JsonObject, NativeToolContext], Awaitable[NativeToolOutput]]


def call(name: str, arguments: JsonObject | None = None, *, malformed: str | None = None) -> RequestedCall:
    """A tool call as the model asks for it."""
    return RequestedCall(name=name, arguments=arguments or {}, malformed=malformed)


def asks(*names: str, text: str = "", usage: ModelUsage | None = None) -> ModelTurn:
    """A turn that calls tools without arguments."""
    turn = ModelTurn(text=text, calls=tuple(call(name) for name in names))
    return turn if usage is None else replace(turn, usage=usage)


def says(text: str = "Done.") -> ModelTurn:
    """A turn that answers."""
    return ModelTurn(text=text)


class InMemoryNativeTool:
    """A native tool that answers with a value, an exception or what a function returns."""

    def __init__(
        self,
        answer: "JsonValue | Exception | NativeAnswer",
        *,
        kind: ToolType = ToolType.CODE_EXECUTION,
        repeatable: bool = False,
    ) -> None:
        self.calls: list[JsonObject] = []
        self.cancelled = 0
        self._answer = answer
        self._tool = a_tool(kind.value, type=kind, parameters={"type": "object"}, repeatable=repeatable)

    @property
    def tool(self) -> Tool:
        return self._tool

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        self.calls.append(arguments)
        if isinstance(self._answer, Exception):
            raise self._answer
        if not callable(self._answer):
            return NativeToolOutput(value=self._answer)
        try:
            return await self._answer(arguments, context)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class HeldServer:
    """Tools that wait at gates: `held` until its gate opens, `quick` not at all."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.tools = {"held": InMemoryTool(answer=self._held), "quick": InMemoryTool(answer=text_reply("quick"))}

    def servers(self) -> dict[str, InMemoryMcpServer]:
        return {"s": InMemoryMcpServer(tools=self.tools)}

    async def _held(self, _: Invocation) -> McpReply:
        await self.gate.pass_through()
        return text_reply("held")


class SubmittedRuns:
    """The `RunQueue` port: a list of who was rung for."""

    def __init__(self) -> None:
        self.run_ids: list[RunId] = []

    async def submit(self, *run_ids: RunId) -> None:
        self.run_ids.extend(run_ids)


class FlatPrices:
    """The `PriceTable` port: one price per token, for models that are priced."""

    def __init__(self, usd_per_token: str = "0.001") -> None:
        self.usd_per_token = Decimal(usd_per_token)

    def cost_usd(self, model: str, usage: ModelUsage) -> Decimal | None:
        if model.startswith("free:"):
            return None
        return self.usd_per_token * (usage.input_tokens + usage.output_tokens)


class AllModels:
    """The `ModelDirectory` port: every model can be used but those of `nowhere`."""

    async def problem_with(self, organization_id: str, model: str) -> str | None:
        return "there is no provider nowhere" if model.startswith("nowhere:") else None

    async def not_taken(self, organization_id: str, model: str, settings: ModelSettings) -> tuple[str, ...]:
        return ()


@dataclass(slots=True)
class RecordingTracer:
    """The `Tracer` port, remembering."""

    generations: list[GenerationRecord] = field(default_factory=list)
    tool_calls: list[ToolCallRecord] = field(default_factory=list)
    finished: list[Run] = field(default_factory=list)
    enabled: bool = True

    def generation(self, record: GenerationRecord) -> None:
        self.generations.append(record)

    def tool_call(self, record: ToolCallRecord) -> None:
        self.tool_calls.append(record)

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        self.finished.append(run)

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        return {"traceparent": f"00-{call_id}"}


class OneEventAtATime(InMemoryRunStore):
    """A store that ends each page of events after one event, as large messages do."""

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        return (await super().events(organization_id, run_id, after_seq=after_seq, limit=limit))[:1]
