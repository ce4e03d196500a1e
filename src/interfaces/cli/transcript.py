"""Messages and runs as text for people."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from interfaces.cli.answers import read_as
from interfaces.cli.terminal import Terminal, counted, one_line, short_json
from interfaces.http.runs.views import RunView
from interfaces.http.threads.views import MessageView

_RESULT_LIMIT = 2000
_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """What a call's server asks: a form (`schema`), or a page to visit."""

    message: str
    schema: dict[str, object] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a message, of any kind: text, image, file, tool_use (perhaps with a question, or
    waiting for an approval) or tool_result."""

    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)
    malformed: str | None = None
    elicitation: Elicitation | None = None
    approval_id: str | None = None
    expires_at: str = ""
    reason: str = ""
    tool_id: str = ""
    tool_name: str = ""
    result: str = ""
    is_error: bool = False
    media_type: str = ""


def parts_of(message: MessageView) -> list[Part]:
    """The parts of a message. Raises UnexpectedAnswer."""
    return read_as(list[Part], message["content"])


def show_messages(terminal: Terminal, messages: list[MessageView]) -> None:
    """A transcript: roles, texts, tool calls and their results."""
    for message in messages:
        heading = f"{message['role']}  {message['created_at']}".rstrip()
        terminal.styled(f"{heading}  {message['run_id']}" if message["run_id"] else heading, style="bold")
        for part in parts_of(message):
            for line in part_lines(part):
                terminal.line(f"{_INDENT}{line}".rstrip())
        terminal.line()


def part_lines(part: Part) -> Iterator[str]:
    """A message part as lines; long tool results are cut."""
    match part.type:
        case "text":
            yield from part.text.splitlines()
        case "image":
            yield f"[image {part.media_type}]"
        case "file":
            yield f"[file {part.name or part.media_type}]"
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
    return f"{call.name} {short_json(call.params) if call.malformed is None else one_line(call.malformed, 80)}"


def incomplete_text(run: RunView) -> str:
    """Why the run is incomplete, the reason's name and words."""
    reason = run["incomplete_reason"]
    return "" if reason is None else f"{reason}: {reason.explanation}"


def output_text(run: RunView) -> str:
    """The object that matches the output schema, as JSON, otherwise the text of the output."""
    found = run["output_json"]
    return run["output"] or "" if found is None else json.dumps(found, ensure_ascii=False, indent=2)


def provider_words(run: RunView) -> str:
    """The model provider's error on one line; empty if unknown."""
    said = None if run["error"] is None else run["error"].get("provider_error")
    return "" if said is None else one_line(said["message"], _RESULT_LIMIT)


def describe_run(terminal: Terminal, run: RunView, *, agent: str | None) -> None:
    """The fields of a run, with the name of its agent if there is one."""
    usage = run["usage"]
    cost = f", ${usage['cost_usd']:.4f}" if usage["cost_usd"] else ""
    terminal.fields(
        {
            "run": run["id"],
            "status": run["status"],
            "reason": incomplete_text(run),
            "error": f"{run['error']['code']}: {one_line(run['error']['detail'])}" if run["error"] else "",
            "provider said": provider_words(run),
            "output": "" if run["output_json"] is None else short_json(run["output_json"]),
            "thread": run["thread_id"],
            "agent": f"{agent or run['agent_id']}, version {run['agent_version']}",
            "created": run["created_at"],
            "started": run["started_at"] or "",
            "finished": run["finished_at"] or "",
            "attempts": str(run["attempt"]) if run["attempt"] > 1 else "",
            "usage": f"{counted(usage['turns'], 'turn')}, {counted(usage['tool_calls'], 'tool call')}, {usage['input_tokens']} input and "
            f"{usage['output_tokens']} output tokens{cost}",
        }
    )


def show_pending(terminal: Terminal, run: RunView) -> None:
    """The pending actions of a run, and the commands that settle them. On stderr."""
    terminal.note(f"The run {run['id']} waits for:")
    pending = read_as(list[Part], run["pending"])
    for call in pending:
        terminal.note(f"{_INDENT}{call_text(call)}  [{call.id}]")
        if call.elicitation is not None:
            terminal.note(f"{_INDENT}{_INDENT}{pending_question(call.elicitation)}")
        if call.approval_id is not None:
            terminal.note(f"{_INDENT}{_INDENT}needs an approval until {call.expires_at}: {one_line(call.reason, 300)}")
            terminal.note(f"{_INDENT}{_INDENT}dragoman approval decide {call.approval_id} --approve (or --deny)")
    terminal.note(f"Resume it with: dragoman run resume {run['id']} {' '.join(map(_settling, pending))}")


def _settling(call: Part) -> str:
    """The option that settles a pending call."""
    if call.approval_id is not None:
        return f"--approve {call.id}"
    return f"{'--result' if call.elicitation is None else '--answer'} {call.id}={_given(call)}"


def pending_question(asked: Elicitation) -> str:
    """A server's question on one line, without control characters."""
    if asked.url is not None:
        return f"asks you to visit {one_line(asked.url, 300)}: {one_line(asked.message, 300)}"
    fields = (asked.schema or {}).get("properties")
    names = ", ".join(one_line(name, 40) for name in fields) if isinstance(fields, dict) else ""
    return f"asks: {one_line(asked.message, 300)}" + (f" ({names})" if names else "")


def _given(call: Part) -> str:
    if call.elicitation is None:
        return "TEXT"
    return "accept" if call.elicitation.url is not None else "'{…}'"
