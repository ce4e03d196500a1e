"""What each setting is for, in the order readers look for them. The class says what values look like; a setting that is missing here
fails the build."""

from collections.abc import Mapping

_GUIDES = "../guides"

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "The service": {
        "home": "The data directory: database, keys, scripts, installed servers. One process owns it at a time.",
        "database_url": f"Where data is kept: SQLite in HOME unless this says otherwise; PostgreSQL for [any number of processes]({_GUIDES}/postgresql.md).",
        "database_wait_s": "How long a process that starts waits for PostgreSQL to answer; then it ends with status 1. A process that runs waits as long as it takes.",
        "host": "Where it listens.",
        "port": "Where it listens; 0 takes a free one.",
        "public_url": f"The address people and clients know it by: what tokens, [authorization servers]({_GUIDES}/secrets-and-auth.md), the console's cookie and the [gateway]({_GUIDES}/gateway.md) go by. Where it listens unless set.",
        "secret_key": f"Encrypts stored secrets. Kept in HOME unless set; must be set with PostgreSQL. Several are for [rotation]({_GUIDES}/secrets-and-auth.md#change-the-key).",
        "worker_concurrency": "How many runs a process executes at a time.",
        "key_rate_limit": f"How often each [API key]({_GUIDES}/organizations.md) may be used.",
        "max_connections": "How many connections of clients are open at a time; the next ones are answered 503. At most three quarters of the files that the process may open.",
        "max_connections_per_address": f"How many of them one address, or IPv6 network (/64), has ([what bounds a request]({_GUIDES}/deploy.md#requests-and-connections)).",
        "shared_addresses": "Addresses of reverse proxies and of other machines that many clients share. They are bounded by `DRAGOMAN_MAX_CONNECTIONS` only.",
        "request_timeout_s": "When a head that has not arrived is answered 408, and a body that took this long and a second for each 4 KiB.",
        "memory_bytes": f"The memory that the process may use; unless set, that of the machine, its control group or its limits. [Large requests and transcripts]({_GUIDES}/deploy.md#requests-and-connections) in memory are bounded by it.",
        "sqlite_synchronous": f"`normal` survives a killed process, `full` also [a power cut]({_GUIDES}/durability.md#which-crash-on-which-database).",
    },
    "MCP servers and the network": {
        "mcp_enabled": "`false` switches all MCP tools off.",
        "egress_allow": f"What MCP servers, pages and receivers of webhooks may be although they are not public ([addresses]({_GUIDES}/secrets-and-auth.md#allow-an-address-inside-your-network)); `127.0.0.0/8` for this machine.",
        "http_proxy": f"The proxy for requests to http URLs: of models, MCP servers, OAuth, webhooks, workflows, pages and searches ([proxies]({_GUIDES}/secrets-and-auth.md#use-a-proxy)).",
        "https_proxy": "The proxy for requests to https URLs.",
        "no_proxy": "What is reached without a proxy: `*` for all, host names with their subdomains, addresses and networks, each with or without a port. This machine always is.",
        "mcp_rate_limit": f"How often the MCP servers of each organization may be called, taken together ([more limits]({_GUIDES}/mcp-operations.md)).",
        "mcp_max_calls": "How many MCP calls of an organization are under way at a time.",
        "mcp_max_processes": "How many started MCP servers an organization has at a time.",
        "mcp_process_limits": f"What a started MCP server may use ([limits]({_GUIDES}/confinement.md#limits)).",
        "mcp_sandbox": f"How started MCP servers and installers are [confined]({_GUIDES}/confinement.md).",
        "mcp_readable": "What every started MCP server may read besides its own files.",
        "mcp_writable": "What every started MCP server may also write.",
        "mcp_ports": "The TCP ports that started MCP servers may connect to.",
        "mcp_container_engine": f"The engine of servers of [kind oci]({_GUIDES}/confinement.md#containers): by `auto` the first socket of Podman or Docker that is there.",
        "mcp_container_cpus": "How many processors a server in a container may use.",
        "workflow_tool_ttl_s": "How long after its registration a [tool of a workflow run](workflow-language.md#credentials) may be called with what the run bound to it.",
        "tool_search_threshold": f"How many MCP tools an agent is shown at most; with more it [searches]({_GUIDES}/many-tools.md).",
    },
    "Models": {
        "openai_api_key": f"Makes the provider `openai` of the [default organization]({_GUIDES}/organizations.md#add-a-model-provider).",
        "openai_base_url": "A server that speaks OpenAI's API, in place of OpenAI's.",
        "openai_echo_reasoning": "Where the environment's provider `openai` gets a model's reasoning back in chat completions: in the `tool_loop` after the last message of the user, `always` or `never`.",
        "openai_wire": "API of the environment's provider `openai`. `auto` is the Responses API at OpenAI itself, chat completions at another address.",
        "anthropic_api_key": "Makes the provider `anthropic` likewise.",
        "anthropic_base_url": "A server that speaks messages, in place of Anthropic's.",
    },
    "Searching the web": {
        "search_provider": f"Who answers [`internet_search`]({_GUIDES}/native-tools.md).",
        "brave_api_key": "The key of Brave Search, where that answers.",
        "tavily_api_key": "The key of Tavily, where that answers.",
        "brave_base_url": "Another address of Brave Search.",
        "tavily_base_url": "Another address of Tavily.",
        "duckduckgo_base_url": "Another address of DuckDuckGo.",
    },
    "Logs, metrics and traces": {
        "log_level": "What is logged to standard error.",
        "log_format": "`json` for machines.",
        "log_slow_ms": f"A request, or an MCP call of a run, that takes so many milliseconds is [logged]({_GUIDES}/monitoring.md#logs), but for waits and streams.",
        "metrics_token": f"Who may read [`/metrics`]({_GUIDES}/monitoring.md#metrics): anybody unless set.",
        "metrics_port": "Where a worker answers `/metrics`; nowhere unless set.",
        "trace_content": f"`off` keeps prompts, replies, arguments and results out of [traces]({_GUIDES}/monitoring.md#traces).",
        "otel_endpoint": "Traces go to this OpenTelemetry collector.",
        "otel_headers": "What goes along with every export to it.",
        "langfuse_public_key": "Traces go to Langfuse; off without both keys.",
        "langfuse_secret_key": "Traces go to Langfuse; off without both keys.",
        "langfuse_host": "Where Langfuse is; its own cloud unless set.",
        "langfuse_base_url": "The same, as newer versions name it; goes before `LANGFUSE_HOST`.",
    },
    "The command line": {
        "url": f"The service that [commands]({_GUIDES}/cli.md#which-service-it-talks-to) talk to, where it is elsewhere.",
        "api_key": "The key they use there.",
    },
}
