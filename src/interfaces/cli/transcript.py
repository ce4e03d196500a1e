"""Messages and runs as text for people."""

from collections.abc import Iterator

from domain.runs.limits import IncompleteReason
from interfaces.cli.shapes import Elicitation, Message, Part, Run
from interfaces.cli.terminal import Terminal, one_line, short_json

_RESULT_LIMIT = 2000
_INDENT = "  "


def show_messages(terminal: Terminal, messages: list[Message]) -> None:
    """A transcript: who spoke, what they said, which tools were called and what they answered."""
    for message in messages:
        heading = f"{message.role}  {message.created_at}".rstrip()
        terminal.styled(f"{heading}  {message.run_id}" if message.run_id else heading, style="bold")
        for part in message.content:
            for line in part_lines(part):
                terminal.line(f"{_INDENT}{line}".rstrip())
        terminal.line()


def part_lines(part: Part) -> Iterator[str]:
    """A part of a message, line by line; long tool results are cut."""
    match part.type:
        case "text":
            yield from part.text.splitlines()
        case "image":
            yield f"[image {part.media_type}]"
        case "tool_use":
            yield f"→ {call_text(part)}  [{part.id}]"
        case "tool_result":
            yield f"← {part.tool_name}{' failed' if part.is_error else ''}  [{part.tool_id}]"
            missing = len(part.result) - _RESULT_LIMIT
            yield from (f"{_INDENT}{line}" for line in part.result[:_RESULT_LIMIT].splitlines())
            if missing > 0:
                yield f"{_INDENT}… {missing} more characters (--json shows all)"
        case kind:
            yield f"[{kind}]"


def call_text(call: Part) -> str:
    """A tool call on one line."""
    return f"{call.name} {short_json(call.params) if call.malformed is None else one_line(call.malformed, 80)}"


def incomplete_text(run: Run) -> str:
    """Why the run is incomplete, the reason's name and words; no words for a reason that only a newer service knows."""
    reason = run.incomplete_reason or ""
    return f"{reason}: {IncompleteReason(reason).explanation}" if reason in set(IncompleteReason) else reason


def provider_words(run: Run) -> str:
    """What the model provider said when it failed the run, on one line; empty if nothing is known."""
    said = None if run.error is None else run.error.provider_error
    return "" if said is None else one_line(str(said.get("message", "")), _RESULT_LIMIT)


def show_run(terminal: Terminal, run: Run) -> None:
    """A run's fields."""
    usage = run.usage
    terminal.fields(
        {
            "run": run.id,
            "status": run.status,
            "reason": incomplete_text(run),
            "error": f"{run.error.code}: {one_line(run.error.detail)}" if run.error else "",
            "provider said": provider_words(run),
            "thread": run.thread_id,
            "agent": f"{run.agent_id} version {run.agent_version}",
            "created": run.created_at,
            "started": run.started_at or "",
            "finished": run.finished_at or "",
            "attempts": str(run.attempt) if run.attempt > 1 else "",
            "usage": f"{usage.turns} turns, {usage.tool_calls} tool calls, {usage.input_tokens} input and "
            f"{usage.output_tokens} output tokens{f', ${usage.cost_usd:.4f}' if usage.cost_usd else ''}",
        }
    )


def show_pending(terminal: Terminal, run: Run) -> None:
    """What a waiting run waits for, and the command that settles it. On stderr."""
    terminal.note(f"The run {run.id} waits for:")
    for call in run.pending:
        terminal.note(f"{_INDENT}{call_text(call)}  [{call.id}]")
        if call.elicitation is not None:
            terminal.note(f"{_INDENT}{_INDENT}{_question(call.elicitation)}")
        if call.approval_id is not None:
            terminal.note(f"{_INDENT}{_INDENT}needs an approval until {call.expires_at}: {one_line(call.reason, 300)}")
            terminal.note(f"{_INDENT}{_INDENT}dragoman approval decide {call.approval_id} --approve (or --deny)")
    terminal.note(f"Go on with: dragoman run-resume {run.id} {' '.join(map(_settling, run.pending))}")


def _settling(call: Part) -> str:
    """The option that settles a pending call."""
    if call.approval_id is not None:
        return f"--approve {call.id}"
    return f"{'--result' if call.elicitation is None else '--answer'} {call.id}={_given(call)}"


def _question(asked: Elicitation) -> str:
    """What a server asks, on one line. It says what it likes: no control characters get to the terminal."""
    if asked.url is not None:
        return f"asks you to visit {one_line(asked.url, 300)}: {one_line(asked.message, 300)}"
    fields = (asked.schema or {}).get("properties")
    names = ", ".join(one_line(name, 40) for name in fields) if isinstance(fields, dict) else ""
    return f"asks: {one_line(asked.message, 300)}" + (f" ({names})" if names else "")


def _given(call: Part) -> str:
    if call.elicitation is None:
        return "TEXT"
    return "accept" if call.elicitation.url is not None else "'{…}'"
