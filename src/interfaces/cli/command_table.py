"""The commands of the tree, with what the tree's own help says of them, so that nothing else is loaded to show it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command or a group of them: the attribute of `commands/MODULE.py`. `summary` is the first sentence of its help; a group says its
    epilog itself."""

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
        summary="Run an agent and show what it does.",
        module="run",
        attribute="run",
        epilog='Example: dragoman run "What changed last week?" --agent guide',
    ),
    Command(
        name="run-show",
        summary="Show a run: where it stands, what it used, what was said.",
        module="runs",
        attribute="run_show",
        epilog="Example: dragoman run-show run_0123 --events",
    ),
    Command(
        name="run-cancel",
        summary="Cancel a run, and wait until it has stopped; or stop all runs of an agent, of a server, or of the organization.",
        module="runs",
        attribute="run_cancel",
        epilog="Examples: dragoman run-cancel run_0123; dragoman run-cancel --agent guide",
    ),
    Command(
        name="run-resume",
        summary="Give a waiting run its results, answers and approvals, and follow it on.",
        module="runs",
        attribute="run_resume",
        epilog='Example: dragoman run-resume run_0123 --result call_1="sent"',
    ),
    _group("mcp", "Manage MCP servers."),
    _group("agent", "Manage agents."),
    _group("tool", "List and explain tools."),
    _group("thread", "Read threads, and release them."),
    _group("source", "Give threads files to search and to compute with."),
    _group("approval", "Approve or deny tool calls that wait for it."),
    _group("schedule", "Begin runs by the clock."),
    _group("audit", "Read, export and verify the audit trail."),
    _group("org", "Manage organizations (needs a platform key) and the settings of one's own."),
    _group("key", "Manage API keys."),
    _group("gateway", "Open an agent's tools to MCP clients."),
    _group("provider", "Manage the organization's model providers."),
    _group("secret", "Manage named secrets."),
    _group("webhook", "See and repeat announcements of runs; sign them with a new key."),
    _group("workflow", "Manage and run workflows."),
    _group("db", "Look after the database."),
    Command(
        name="doctor",
        summary="Check the installation, the data directory, the database, the service, the model providers and every MCP server.",
        module="doctor",
        attribute="doctor",
        epilog="Example: dragoman doctor",
    ),
)
