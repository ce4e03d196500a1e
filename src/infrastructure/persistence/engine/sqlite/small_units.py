"""Which steps of runs are small enough to be stored on the event loop: few rows, and not much text."""

from collections.abc import Iterable

from application.runs.ports import NewRun
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.step import Step
from domain.threads.message import Content, ImageContent, TextContent, ToolResultContent

_ROWS = 64
_CHARACTERS = 64 * 1024


def is_small_step(step: Step) -> bool:
    """Of a run that goes on or completes: whatever else ends or suspends one looks at other rows too."""
    return (
        step.run.status in (RunStatus.IN_PROGRESS, RunStatus.COMPLETED)
        and step.quarantine is None
        and len(step.events) + len(step.messages) + len(step.recorded) + len(step.settled) <= _ROWS
        and sum(_characters(message.content) for message in step.messages) <= _CHARACTERS
        and sum(len(one.result.text) + _characters(one.result.images) for one in step.settled) <= _CHARACTERS
    )


def is_small_start(new: NewRun) -> bool:
    """Of a run that neither stops others nor forgets old idempotency keys."""
    return (
        new.idempotency is None
        and new.firing is None
        and new.strategy in (MultitaskStrategy.ENQUEUE, MultitaskStrategy.REJECT)
        and _characters(new.run.input) <= _CHARACTERS
    )


def _characters(content: Iterable[Content]) -> int:
    """Of what was said, and of what tools and images hold; what a model may ask for is bounded by its reply."""
    count = 0
    for part in content:
        match part:
            case TextContent():
                count += len(part.text)
            case ToolResultContent():
                count += len(part.result) + _characters(part.images)
            case ImageContent():
                count += len(part.data or "")
            case _:
                pass
    return count
