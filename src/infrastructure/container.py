"""The one place where the house is put together: every adapter and use case, from the settings.

Its slices are in `infrastructure.containers`, one file each; here they become one. Providers are synchronous and build
without I/O; what must be opened and closed is entered in lifecycle.py. Heavy adapters are imported when they are first built.
"""

from infrastructure.containers.agents import Agents
from infrastructure.containers.approvals import Approvals
from infrastructure.containers.gateway import Gateway
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.models import Models
from infrastructure.containers.runs import Runs
from infrastructure.containers.schedules import Schedules
from infrastructure.containers.storage import Storage
from infrastructure.containers.surroundings import Surroundings
from infrastructure.containers.threads import Threads
from infrastructure.containers.tools import Tools
from infrastructure.containers.upkeep import Upkeep
from infrastructure.containers.webhooks import Webhooks
from infrastructure.containers.workflows import Workflows


class Container(
    Surroundings,
    Storage,
    Models,
    McpServers,
    Threads,
    Tools,
    Agents,
    Identity,
    Webhooks,
    Runs,
    Schedules,
    Gateway,
    Approvals,
    Workflows,
    Upkeep,
):
    """Give it `settings`; ask it for use cases, each by its name. A slice takes from those above it only."""
