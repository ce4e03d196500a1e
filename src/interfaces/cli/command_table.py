"""The table of commands with their summaries, so that help loads nothing else."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command or a group: the attribute of `commands/MODULE.py`. `summary` is the first
    sentence of its help."""

    name: str
    summary: str
    module: str
    attribute: str
    epilog: str | None = None
    is_group: bool = False


def _group(name: str, summary: str) -> Command:
    return Command(name=name, summary=summary, module=name, attribute=f"{name}_app", is_group=True)


COMMANDS = (
    Command(
        name="serve",
        summary="Run the service on DRAGOMAN_HOST and DRAGOMAN_PORT until it is stopped.",
        module="serve",
        attribute="serve",
        epilog="Example: dragoman serve",
    ),
    Command(
        name="worker",
        summary="Execute runs of a PostgreSQL database until stopped, beside `dragoman serve` and other workers.",
        module="worker",
        attribute="worker",
        epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://dragoman@db/dragoman dragoman worker",
    ),
    Command(
        name="run",
        summary="Run an agent and show its progress.",
        module="run",
        attribute="run",
        epilog='Example: dragoman run "What changed last week?" --agent guide',
    ),
    Command(
        name="run-show",
        summary="Show a run: its status, usage and messages.",
        module="runs",
        attribute="run_show",
        epilog="Example: dragoman run-show run_0123 --events",
    ),
    Command(
        name="run-cancel",
        summary="Cancel a run and wait until it has stopped, or cancel all runs of an agent, a server or the organization.",
        module="runs",
        attribute="run_cancel",
        epilog="Examples: dragoman run-cancel run_0123; dragoman run-cancel --agent guide",
    ),
    Command(
        name="run-resume",
        summary="Resume a waiting run with results, answers and approvals, and follow it.",
        module="runs",
        attribute="run_resume",
        epilog='Example: dragoman run-resume run_0123 --result call_1="sent"',
    ),
    _group("mcp", "Manage MCP servers."),
    _group("agent", "Manage agents."),
    _group("tool", "List and explain tools."),
    _group("thread", "Read threads, and release them."),
    _group("source", "Manage files of threads."),
    _group("approval", "Approve or deny pending tool calls."),
    _group("schedule", "Start runs on a schedule."),
    _group("audit", "Read, export and verify the audit trail."),
    _group("org", "Manage organizations (requires a platform key) and the settings of your own."),
    _group("key", "Manage API keys."),
    _group("gateway", "Open an agent's tools to MCP clients."),
    _group("provider", "Manage the organization's model providers."),
    _group("secret", "Manage named secrets."),
    _group("webhook", "Manage webhook deliveries and the signing key."),
    _group("workflow", "Manage and run workflows."),
    _group("db", "Upgrade and back up the database."),
    Command(
        name="doctor",
        summary="Check the installation, the data directory, the database, the service, the model providers and every MCP server.",
        module="doctor",
        attribute="doctor",
        epilog="Example: dragoman doctor",
    ),
)
