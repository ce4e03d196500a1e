"""What the service prints when it is ready: for a person on a terminal the links and what is
missing, elsewhere the address and where the key is."""

import sys

from application.identity.authenticate import AuthenticateCommand
from application.system.pages import PageRequest
from infrastructure.container import Container
from interfaces.console_paths import SIGN_IN_PATH, browsable

_ONE = PageRequest(limit=1)


async def announce(container: Container, url: str, *, first_start: bool) -> None:
    """Print it. The first key is shown once, and only on a terminal."""
    home, key = container.home(), container.home().read_admin_key()
    if key is None:
        lines = [f"API key: {home.admin_key_path} is missing; use a key of this installation"]
    elif not sys.stdout.isatty():
        lines = [f"API key: {home.admin_key_path}"]
    else:
        lines = await _for_a_person(container, url, key, first_start=first_start)
    sys.stdout.write("\n".join([f"Dragoman is ready on {url}", *lines]) + "\n")
    sys.stdout.flush()


async def _for_a_person(container: Container, url: str, key: str, *, first_start: bool) -> list[str]:
    path = container.home().admin_key_path
    link = f"{browsable(url)}{SIGN_IN_PATH}/{container.sign_in_links().create(key).code}"
    return [
        f"  Console    {link}",
        "             (signs you in, once, within 15 minutes; `dragoman open` makes another link)",
        f"  API        {browsable(url)}/docs",
        f"  API key    {f'{key} (also in {path})' if first_start else path}",
        *await _missing(container, key),
    ]


async def _missing(container: Container, key: str) -> list[str]:
    settings = container.settings()
    principal = await container.authenticate().execute(AuthenticateCommand(token=key))
    lines = []
    keyed = settings.openai_api_key is not None or settings.anthropic_api_key is not None
    if not keyed and not (await container.list_model_providers().execute(principal, _ONE)).items:
        lines.append("  No model   `dragoman provider add` stores a key; `dragoman init` sets up a first agent")
    if not (await container.list_mcp_servers().execute(principal, _ONE)).items:
        lines.append("  No server  `dragoman mcp add` registers an MCP server; `dragoman init` offers some")
    return lines
