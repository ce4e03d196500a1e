"""What a run publishes of a model call while the reply streams."""

from collections.abc import Callable
from functools import partial

from application.models.ports import ModelRequest, ModelRetrying, ReasoningDelta, TextDelta
from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from domain.ids import MessageId, message_id
from domain.json_value import JsonObject
from domain.policy.canary import mark
from domain.policy.canary_scan import CanaryStream
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run_events import message_discarded
from domain.runs.usage import ModelSpending


class _Shown:
    """Text of one kind, published as it comes. Text that could start a canary token is delayed
    until it is complete. With tokens to watch, `said` has what was published."""

    def __init__(self, watched: CanaryStream | None, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self.reset(watched)

    def reset(self, watched: CanaryStream | None) -> None:
        """Begin again with an empty text."""
        self._watched = watched
        self.said: list[str] = []

    def add(self, text: str) -> str | None:
        """Publish a piece. Returns the id of a canary token in it; its mark is published last."""
        if self._watched is None:
            self._publish(text)
            return None
        clean = self._watched.feed(text)
        shown = clean.text if clean.found is None else clean.text + mark(clean.found)
        if shown:
            self.said.append(shown)
            self._publish(shown)
        return clean.found

    def finish(self) -> None:
        """Publish delayed text."""
        rest = "" if self._watched is None else self._watched.finish()
        if rest:
            self._publish(rest)


class PublishedReply:
    """The events of one model call.

    - Each attempt has its own message id; `message_id` is the current one.
    - `model` is the model of the attempt, `streamed_bytes` the size of its reply so far, reasoning
      included.
    """

    def __init__(self, session: RunSession, clock: Clock, request: ModelRequest, *, part: str) -> None:
        self.model = request.model
        self.streamed_bytes = 0
        self._session = session
        self._clock = clock
        self._turn = request.turn
        self._part = f"{part}.{session.run.attempt}"
        self._attempt = 0
        self.message_id = self._new_message_id()
        self._begun = False
        self._shows_reasoning = request.reasoning_summary
        self._text = _Shown(session.guard.stream(), partial(self._publish, RunEventType.MESSAGE_DELTA))
        self._reasoning = _Shown(session.guard.stream(), partial(self._publish, RunEventType.REASONING_DELTA))

    @property
    def said(self) -> str:
        """The published text of the current reply."""
        return "".join(self._text.said)

    def delta(self, event: TextDelta | ReasoningDelta) -> str | None:
        """Publish a piece of text or reasoning. Returns the id of a canary token that ends the
        reply."""
        self.streamed_bytes += len(event.text.encode(errors="replace"))
        if isinstance(event, TextDelta):
            return self._text.add(event.text)
        return self._reasoning.add(event.text) if self._shows_reasoning else None

    def finish(self) -> None:
        """Publish delayed text: the reply is complete."""
        self._reasoning.finish()
        self._text.finish()

    def _publish(self, kind: RunEventType, text: str) -> None:
        self._begun = True
        self._session.unfinished = self.message_id
        self._add(kind, {"message_id": self.message_id, "text": text})

    def retrying(self, event: ModelRetrying, spent: ModelSpending | None) -> None:
        """Discard the published text and report the new attempt."""
        self.discard(event.reason, spent)
        self.model = event.model
        data: JsonObject = {"model": event.model, "attempt": event.attempt, "wait_s": round(event.wait_s, 3)}
        self._add(RunEventType.MODEL_RETRYING, data)

    def discard(self, reason: str, spent: ModelSpending | None) -> None:
        """Discard the published text of the current reply, if any."""
        if self._begun:
            at = self._clock.now()
            self._session.buffer.add(message_discarded(self.message_id, reason=reason, at=at, spent=spent))
        self._begun = False
        self._session.unfinished = None
        self.streamed_bytes = 0
        self._text.reset(self._session.guard.stream())
        self._reasoning.reset(self._session.guard.stream())
        self._attempt += 1
        self.message_id = self._new_message_id()

    def _new_message_id(self) -> MessageId:
        return message_id(self._session.run.id, self._turn, self._part, self._attempt)

    def _add(self, kind: RunEventType, data: JsonObject) -> None:
        self._session.buffer.add(NewEvent(type=kind, at=self._clock.now(), data=data))
