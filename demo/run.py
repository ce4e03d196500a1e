"""One agent run on this repository, start to end: a real MCP server over stdio, a native tool, a
stream, audit and trace.

Uses the service as any client would: a subprocess for `dragoman serve`, HTTP for everything else.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich.console import Console

from demo.trace_receiver import TraceReceiver, trace_receiver

ROOT = Path(__file__).resolve().parent.parent
GIT_SERVER = ROOT / ".venv-demo" / "bin" / "mcp-server-git"
START_DEADLINE_S = 120.0
QUESTION = (
    "Look at the history of this repository: who has been committing what lately, how long are the commit subjects on "
    "average, and what did the newest commit change? Use the git tools to look and code_execution to calculate."
)
INSTRUCTIONS = (
    f"You are a careful release engineer. The repository is at {ROOT}. Look things up with the git tools, calculate with "
    "code_execution, and answer in a few sentences with figures."
)

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model the demo uses, and how it came to be."""

    name: str
    remark: str


def chosen_model() -> ModelChoice:
    """A live model where a key is set, else the shipped script."""
    wanted = os.environ.get("DRAGOMAN_DEMO_MODEL")
    if os.environ.get("OPENAI_API_KEY"):
        return ModelChoice(name=wanted or "openai:gpt-5-mini", remark="OPENAI_API_KEY is set")
    if os.environ.get("ANTHROPIC_API_KEY"):
        return ModelChoice(name=wanted or "anthropic:claude-haiku-4-5", remark="ANTHROPIC_API_KEY is set")
    return ModelChoice(
        name="scripted:tour.yaml",
        remark="no OPENAI_API_KEY or ANTHROPIC_API_KEY is set: the model is a script, everything else is real",
    )


@contextmanager
def service(home: Path, traces: TraceReceiver) -> Iterator[httpx.Client]:
    """`dragoman serve` on a free port with its own data directory; stopped, and waited for, at the
    end."""
    own_backend = bool(os.environ.get("LANGFUSE_PUBLIC_KEY"))
    backend = {
        "LANGFUSE_PUBLIC_KEY": "pk-demo",
        "LANGFUSE_SECRET_KEY": "sk-demo",
        "LANGFUSE_HOST": traces.url,
        "LANGFUSE_BASE_URL": traces.url,
    }
    environment = {
        **os.environ,
        "DRAGOMAN_HOME": str(home),
        "DRAGOMAN_PORT": "0",
        "DRAGOMAN_LOG_LEVEL": os.environ.get("DRAGOMAN_LOG_LEVEL", "ERROR"),
        **({} if own_backend else backend),
    }
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "interfaces.cli", "serve"], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        address = wait_for_address(home, process)
        key = (home / "admin.key").read_text(encoding="utf-8").strip()
        console.print(f"[dim]service ready on {address} after {time.monotonic() - began:.1f} s[/dim]")
        with httpx.Client(
            base_url=f"{address}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120.0, trust_env=False
        ) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def wait_for_address(home: Path, process: subprocess.Popen[bytes]) -> str:
    """The address the service announces once it is ready."""
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"The service ended with exit status {process.returncode} before it was ready.")
        try:
            return str(json.loads((home / "serve.json").read_text(encoding="utf-8"))["url"])
        except (FileNotFoundError, json.JSONDecodeError):
            time.sleep(0.05)
    raise SystemExit("The service did not become ready in time.")


def call(client: httpx.Client, method: str, path: str, body: object = None) -> dict[str, object]:
    """One request; a problem ends the demo with what the service says."""
    response = client.request(method, path, json=body)
    if response.is_error:
        raise SystemExit(f"{method} {path}: {response.text}")
    return dict(response.json())


def heading(text: str) -> None:
    """A section of the story."""
    console.print()
    console.rule(f"[bold]{text}[/bold]", align="left")


def short(value: object, limit: int = 160) -> str:
    """One line of something longer."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def prepare(client: httpx.Client, model: ModelChoice) -> None:
    """Register the git server, test it, create the agent."""
    heading("1  A real MCP server over stdio")
    call(
        client,
        "POST",
        "/mcp-servers",
        {
            "slug": "git",
            "kind": "custom",
            "command": str(GIT_SERVER),
            "args": ["--repository", str(ROOT)],
            "trusted": True,
        },
    )
    tested = call(client, "POST", "/mcp-servers/git/test")
    if not tested["ok"]:
        raise SystemExit(f"The git server does not work: {tested['error']}")
    tools = tested["tools"]
    count = len(tools) if isinstance(tools, list) else tools
    console.print(f"mcp-server-git answers: protocol {tested['protocol_version']}, {count} tools")
    heading("2  An agent")
    console.print(f"model {model.name} ({model.remark})")
    call(
        client,
        "POST",
        "/agents",
        {
            "name": "release-engineer",
            "model": model.name,
            "instructions": INSTRUCTIONS,
            "tools": ["code_execution"],
            "mcp_servers": ["git"],
        },
    )
    console.print("agent release-engineer: native tool code_execution, MCP server git")


def stream_run(client: httpx.Client) -> str:
    """Start the run and print its events as they come; returns the run's id."""
    heading("3  One run, streamed")
    console.print(f"[bold]user[/bold]  {QUESTION}")
    body = {"agent": "release-engineer", "input": QUESTION}
    run_id = ""
    with client.stream("POST", "/runs/stream", json=body) as response:
        if response.is_error:
            response.read()
            raise SystemExit(f"POST /runs/stream: {response.text}")
        event = ""
        for line in response.iter_lines():
            if line.startswith("event:"):
                event = line.removeprefix("event:").strip()
            elif line.startswith("data:"):
                data = json.loads(line.removeprefix("data:"))
                run_id = data.get("run_id", run_id)
                show_event(event, data)
    return run_id


def show_event(event: str, data: dict[str, object]) -> None:
    """One line (or a piece of text) for an event worth seeing."""
    match event:
        case "turn.started":
            console.print(f"\n[cyan]turn {data['turn']}[/cyan]")
        case "message.delta":
            console.print(str(data["text"]), end="", markup=False)
        case "tool.started":
            console.print(f"\n  [yellow]→ {data['name']}[/yellow]", end=" ")
            console.print(short(data["params"]), markup=False)
        case "tool.executed":
            console.print(f"  [green]✓ {data['name']}[/green] in {data['duration_ms']} ms")
        case "tool.failed" | "tool.blocked":
            console.print(f"  [red]✗ {data['name']}[/red]", end=" ")
            console.print(short(data.get("error") or data.get("reason")), markup=False)
        case "end":
            console.print(f"\n\n[bold]run {data['status']}[/bold]")
        case _:
            pass


def show_record(client: httpx.Client, run_id: str) -> str:
    """What was stored: run, transcript, audit. Returns the run's status."""
    run = call(client, "GET", f"/runs/{run_id}")
    heading("4  The stored transcript")
    thread = call(client, "GET", f"/threads/{run['thread_id']}/messages")
    for message in thread["data"] if isinstance(thread["data"], list) else []:
        for part in message["content"]:
            match part["type"]:
                case "text":
                    text = part["text"]
                case "tool_use":
                    text = f"calls {part['name']} {json.dumps(part['params'], ensure_ascii=False)}"
                case _:
                    text = f"{part.get('tool_name', '')} answers: {part.get('result', '')}"
            console.print(f"[bold]{message['role']:<9}[/bold]", end=" ")
            console.print(short(text), markup=False)
    heading("5  The audit trail")
    audit = call(client, "GET", f"/audit-events?run_id={run_id}&limit=50")
    entries = audit["data"] if isinstance(audit["data"], list) else []
    for entry in reversed(entries):
        digest = str(entry.get("arguments_digest") or "")[:19]
        console.print(
            f"{entry['at']}  {entry['action']:<14} {entry.get('tool') or entry['resource']}  {digest}", markup=False
        )
    usage = run["usage"] if isinstance(run["usage"], dict) else {}
    heading("6  What it took")
    console.print(
        f"{usage['turns']} turns, {usage['tool_calls']} tool calls, {usage['input_tokens']} input and "
        f"{usage['output_tokens']} output tokens, {usage['cost_usd']} USD"
    )
    return str(run["status"])


def show_trace(traces: TraceReceiver) -> None:
    """The trace as the backend received it."""
    heading("7  The trace, as the tracing backend received it")
    if traces.spans:
        console.print("\n".join(traces.lines()), markup=False)
    else:
        console.print("The trace went to the Langfuse project of your LANGFUSE_PUBLIC_KEY.")


def main() -> int:
    """Exit status 0 if the run completed."""
    if not GIT_SERVER.exists():
        raise SystemExit("The demo's MCP server is not installed: run `make demo`.")
    home = Path(tempfile.mkdtemp(prefix="dragoman-demo-"))
    model = chosen_model()
    try:
        scripts = home / "scripted"
        scripts.mkdir(mode=0o700)
        shutil.copy(Path(__file__).with_name("tour.yaml"), scripts)
        with trace_receiver() as traces:
            with service(home, traces) as client:
                prepare(client, model)
                status = show_record(client, stream_run(client))
            show_trace(traces)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0 if status == "completed" else 1


if __name__ == "__main__":
    sys.exit(main())
