"""Progress of a run: streamed text on a terminal, plain lines on stderr elsewhere."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from interfaces.cli.terminal import Terminal, counted, duration, one_line, short_json
from interfaces.cli.transcript import incomplete_text, output_text, parts_of, provider_words, show_pending
from interfaces.http.runs.views import RunErrorView, RunView
from interfaces.http.threads.views import MessageView

_ERROR_LIMIT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFields:
    """What an event of a run may carry, over all types."""

    seq: int = 0
    text: str = ""
    message: MessageView | str | None = None
    reason: str = ""
    model: str = ""
    attempt: int = 0
    wait_s: float = 0.0
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)
    duration_ms: int | None = None
    error: RunErrorView | None = None


class RunDisplay(Protocol):
    """Shows one run."""

    def show(self, kind: str, event: EventFields) -> None:
        """The next event."""
        ...

    def remark(self, text: str) -> None:
        """Something about the run that is no event."""
        ...

    def finish(self, run: RunView) -> None:
        """The run has ended or waits."""
        ...


class PlainRunDisplay:
    """A line on stderr for each thing that happens. The answer alone goes to stdout, when it is
    whole: the object that matches the output schema, otherwise the text."""

    def __init__(self, terminal: Terminal, *, answer: bool) -> None:
        self._terminal = terminal
        self._answer = answer

    def show(self, kind: str, event: EventFields) -> None:
        """The next event."""
        if line := _line_for(kind, event):
            self.remark(line)
        elif kind == "message.completed" and isinstance(event.message, dict) and _asks_for_tools(event.message):
            # A message that asks for none is the run's output, which stdout gets.
            self._said(_text_of(event.message).strip())

    def _said(self, text: str) -> None:
        if text:
            self.remark(f"assistant: {text}")

    def remark(self, text: str) -> None:
        """Something about the run that is no event."""
        self._terminal.note(text)

    def finish(self, run: RunView) -> None:
        """The run has ended or waits."""
        if self._answer and run["output"] and run["status"] != "requires_action":
            self._terminal.line(output_text(run))
        self._terminal.note(summary(run))
        if words := provider_words(run):
            self._terminal.note(f"The model provider said: {words}")
        if run["status"] == "requires_action":
            show_pending(self._terminal, run)


class LiveRunDisplay:
    """For a person who watches: the model's text as it comes, with tool calls between."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._streamed = ""
        self._line_open = False

    def show(self, kind: str, event: EventFields) -> None:
        """The next event."""
        match kind:
            case "message.delta":
                self._streamed += event.text
                self._write(event.text)
            case "message.completed" if isinstance(event.message, dict) and event.message["role"] == "assistant":
                if not self._streamed:
                    self._write(_text_of(event.message))
                self._close_message()
            case "message.discarded":
                self._close_message()
                self.remark(f"(that was discarded: {event.reason})")
            case "tool.failed" | "tool.blocked" | "model.retrying" | "run.halted":
                self._styled(_line_for(kind, event), style="yellow")
            case _:
                self._styled(_line_for(kind, event), style="dim")

    def remark(self, text: str) -> None:
        """Something about the run that is no event."""
        self._styled(text, style="dim")

    def finish(self, run: RunView) -> None:
        """The run has ended or waits."""
        self._styled(summary(run), style="green" if run["status"] == "completed" else "bold")
        if words := provider_words(run):
            self._styled(f"The model provider said: {words}", style="yellow")
        if run["status"] == "requires_action":
            show_pending(self._terminal, run)

    def _write(self, text: str) -> None:
        if text:
            self._terminal.stream(text)
            self._line_open = not text.endswith("\n")

    def _close_message(self) -> None:
        self._streamed = ""
        self._end_line()

    def _styled(self, text: str, *, style: str) -> None:
        if text:
            self._end_line()
            self._terminal.styled(text, style=style)

    def _end_line(self) -> None:
        if self._line_open:
            self._terminal.line()
            self._line_open = False


def _text_of(message: MessageView) -> str:
    return "".join(part.text for part in parts_of(message) if part.type == "text")


def _asks_for_tools(message: MessageView) -> bool:
    return any(part.type == "tool_use" for part in parts_of(message))


def _line_for(kind: str, event: EventFields) -> str:
    match kind:
        case "model.retrying":
            wait = f" in {event.wait_s:.0f} s" if event.wait_s >= 1 else ""
            return f"The model call failed; attempt {event.attempt} asks {event.model}{wait}"
        case "tool.started":
            return f"→ {event.name} {short_json(event.params)}"
        case "tool.progress" if isinstance(event.message, str) and event.message:
            return f"… {one_line(event.message, _ERROR_LIMIT)}"
        case "tool.executed":
            return f"← {event.name} done{_took(event)}"
        case "tool.failed":
            return f"← {event.name} failed{_took(event)}: {one_line(_failure_text(event), _ERROR_LIMIT)}"
        case "tool.blocked":
            return f"← {event.name} blocked: {event.reason}"
        case "run.halted":
            return f"halted: {event.reason}" if event.reason else "halted"
        case _:
            return ""


def _took(event: EventFields) -> str:
    return "" if event.duration_ms is None else f" in {duration(event.duration_ms)}"


def _failure_text(event: EventFields) -> str:
    return event.error["detail"] if event.error else "no reason given"


def summary(run: RunView) -> str:
    """How a run stands, on one line: status, why, how long, what it took."""
    usage = run["usage"]
    status = run["status"].replace("_", " ")
    if run["incomplete_reason"]:
        status += f" ({incomplete_text(run)})"
    if run["error"] is not None:
        status += f" ({run['error']['code']}: {one_line(run['error']['detail'], _ERROR_LIMIT)})"
    took = _seconds_between(run["started_at"], run["finished_at"])
    parts = [
        status if took is None else f"{status} in {duration(took * 1000)}",
        counted(usage["turns"], "turn"),
        counted(usage["tool_calls"], "tool call"),
        f"{usage['input_tokens']} + {usage['output_tokens']} tokens",
    ]
    if usage["cost_usd"]:
        parts.append(f"${usage['cost_usd']:.4f}")
    return f"{run['id']} {' · '.join(parts)}"


def _seconds_between(start: str | None, end: str | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return None
