"""A model that says what a use-case test tells it to, waits where it is told to, and remembers what
it was asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from application.models.ports import ModelEvent, ModelReply, ModelRequest, RequestedCall, TextDelta
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from domain.threads.provider_items import ProviderItems


class Gate:
    """A place where the other side stands until the test lets it through."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def pass_through(self) -> None:
        """Say that somebody is here, then wait to be let through."""
        self.reached.set()
        await self.open.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """One call of the model. `events` come first (deltas, retries), then the `text` as one delta,
    then the `gate`, then `error` or the reply with `calls`."""

    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    usage: ModelUsage = field(default_factory=lambda: ModelUsage(input_tokens=100, output_tokens=20))
    events: tuple[ModelEvent, ...] = ()
    finish_reason: FinishReason | None = None
    items: ProviderItems | None = None
    gate: Gate | None = None
    error: Exception | None = None


Script = Callable[[ModelRequest], ModelTurn]


class ScriptedModel:
    """The `FallbackModels` port. `turns` are played in order, whoever asks; a function decides by
    the request instead. `cancelled` counts calls that were cut short, `closed` those whose stream
    came to its end."""

    def __init__(self, turns: Sequence[ModelTurn] | Script = ()) -> None:
        self.requests: list[ModelRequest] = []
        self.fallbacks: list[tuple[str, ...]] = []
        self.cancelled = 0
        self.closed = 0
        self._script = turns if callable(turns) else None
        self._turns = [] if callable(turns) else list(turns)

    def add(self, *turns: ModelTurn) -> None:
        """Have more to say."""
        self._turns += turns

    async def stream(self, request: ModelRequest, fallbacks: tuple[str, ...]) -> AsyncIterator[ModelEvent]:
        """Plays the next turn."""
        self.requests.append(request)
        self.fallbacks.append(fallbacks)
        turn = self._script(request) if self._script is not None else self._turns.pop(0)
        try:
            for event in turn.events:
                yield event
            if turn.text:
                yield TextDelta(text=turn.text)
            if turn.gate is not None:
                await turn.gate.pass_through()
            if turn.error is not None:
                raise turn.error
            yield ModelReply(
                model=request.model,
                text=turn.text,
                calls=turn.calls,
                usage=turn.usage,
                finish_reason=turn.finish_reason or (FinishReason.TOOL_CALLS if turn.calls else FinishReason.STOP),
                items=turn.items,
            )
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.closed += 1
