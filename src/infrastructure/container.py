"""Dependency-injection container: every adapter and use case, built from the settings. Its
slices are in `infrastructure.containers`. Providers are synchronous and without I/O;
lifecycle.py opens and closes adapters. Heavy adapters are imported on first use."""

from infrastructure.containers.agents import Agents
from infrastructure.containers.approvals import Approvals
from infrastructure.containers.gateway import Gateway
from infrastructure.containers.identity import Identity
from infrastructure.containers.maintenance import Maintenance
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.models import Models
from infrastructure.containers.platform import Platform
from infrastructure.containers.provisioning import Provisioning
from infrastructure.containers.runs import Runs
from infrastructure.containers.schedules import Schedules
from infrastructure.containers.storage import Storage
from infrastructure.containers.threads import Threads
from infrastructure.containers.tools import Tools
from infrastructure.containers.webhooks import Webhooks
from infrastructure.containers.workflows import Workflows


class Container(
    Platform,
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
    Maintenance,
    Provisioning,
):
    """Built from `settings`; provides every use case by name. A slice depends only on those
    above it."""
