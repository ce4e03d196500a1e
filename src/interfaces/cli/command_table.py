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
    hidden: bool = False


def _group(name: str, summary: str) -> Command:
    return Command(name=name, summary=summary, module=name, attribute=f"{name}_app", is_group=True)


COMMANDS = (
    Command(
        name="serve",
        summary="Run the service until it is stopped.",
        module="serve",
        attribute="serve",
        epilog="Examples: dragoman serve; dragoman serve --port 9000",
    ),
    Command(
        name="worker",
        summary="Execute runs of a PostgreSQL database.",
        module="worker",
        attribute="worker",
        epilog="Example: DRAGOMAN_DATABASE_URL=postgresql://dragoman@db/dragoman dragoman worker",
    ),
    Command(
        name="drain",
        summary="Let a service or worker finish its runs, and stop.",
        module="drain",
        attribute="drain",
        epilog="Examples: dragoman drain; dragoman drain 4711 --within 60",
    ),
    Command(
        name="init",
        summary="Set up a model, an MCP server and an agent, and say hello.",
        module="init",
        attribute="init",
        epilog="Examples: dragoman init; dragoman init --yes --model scripted --server none",
    ),
    Command(
        name="open",
        summary="Open the console in the browser, signed in.",
        module="open",
        attribute="open_console",
        epilog="Example: dragoman open",
    ),
    Command(
        name="login",
        summary="Sign in to the service with your company's identity provider.",
        module="login",
        attribute="login",
        epilog="Examples: dragoman login; DRAGOMAN_URL=https://dragoman.example.com dragoman login --browser",
    ),
    Command(
        name="logout",
        summary="Sign out of the service.",
        module="login",
        attribute="logout",
        epilog="Example: dragoman logout",
    ),
    Command(
        name="whoami",
        summary="Show who you are for the service.",
        module="whoami",
        attribute="whoami",
        epilog="Example: dragoman whoami",
    ),
    _group("run", "Start and manage runs."),
    Command(
        name="chat",
        summary="Chat with an agent, and decide about its calls.",
        module="chat",
        attribute="chat",
        epilog="Example: dragoman chat --agent guide",
    ),
    Command(
        name="acp",
        summary="Serve an agent to an editor over the Agent Client Protocol.",
        module="acp",
        attribute="acp",
        epilog="Example: dragoman acp --agent guide",
    ),
    _group("mcp", "Manage MCP servers."),
    _group("agent", "Manage agents."),
    _group("tool", "List and explain tools."),
    _group("thread", "Manage threads."),
    _group("source", "Manage files of threads."),
    _group("queue", "Read the queue, cancel runs in it, requeue stuck ones."),
    _group("approval", "Approve or deny pending tool calls."),
    _group("schedule", "Start runs on a schedule."),
    _group("audit", "Read, export and verify the audit trail."),
    _group("archive", "Check the files that retention wrote."),
    _group("org", "Manage organizations and their settings."),
    _group("key", "Manage API keys."),
    _group("idp", "Manage the identity providers where people sign in."),
    _group("user", "Manage people who signed in."),
    _group("session", "List and end sessions of browsers and clients."),
    _group("role", "Manage custom roles."),
    _group("group", "Manage groups of people."),
    _group("account", "Manage your own accounts at MCP servers."),
    _group("gateway", "Open an agent's tools to MCP clients."),
    _group("provider", "Manage the organization's model providers."),
    _group("secret", "Manage named secrets."),
    Command(
        name="usage",
        summary="Show tokens and cost by day, agent, model or person.",
        module="usage",
        attribute="usage",
        epilog="Example: dragoman usage --since 2026-11-01 --by agent",
    ),
    _group("webhook", "Manage webhook deliveries and the signing key."),
    _group("workflow", "Manage and run workflows."),
    _group("db", "Upgrade, back up and shrink the database."),
    Command(
        name="doctor",
        summary="Check the installation and everything it depends on.",
        module="doctor",
        attribute="doctor",
        epilog="Example: dragoman doctor",
    ),
    *(
        Command(
            name=f"run-{verb}",
            summary=f"Former name of `dragoman run {verb}`.",
            module="run",
            attribute=f"{verb}_run",
            epilog=f"Example: dragoman run-{verb} run_0123",
            hidden=True,
        )
        for verb in ("show", "cancel", "resume")
    ),
)
