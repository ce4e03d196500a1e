"""Secrets that a person gave for an MCP server: bound to its address, so that they are sent nowhere else."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.server import McpServer, McpServerConfig

MAX_GIVEN_BYTES = 8 * 1024
"""Of one value: it goes into a header or a URL."""


class AccountOwner(NamedTuple):
    """A person, and the server that acts for them."""

    organization_id: OrganizationId
    server_id: McpServerId
    person_id: UserId


def account_owner(server: McpServer) -> AccountOwner | None:
    """Who gives the secrets that the server uses; None if it acts for no person. The test of a saved server uses those of
    the saved one."""
    if server.person_id is None:
        return None
    return AccountOwner(server.organization_id, server.tested_id or server.id, server.person_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSecrets:
    """`binding` is the address for which they were given, `revision` changes with each change of a value."""

    binding: str
    revision: str
    given_at: datetime
    values: Mapping[str, str] = field(repr=False)

    def of(self, config: McpServerConfig) -> Mapping[str, str]:
        """Those that the server may get, by name: what it names, at the address for which they were given."""
        if self.binding != binding_of_secrets(config):
            return {}
        return {name: self.values[name] for name in config.person_secrets if name in self.values}

    def is_complete(self, config: McpServerConfig) -> bool:
        """Whether the server has all that it needs."""
        return len(self.of(config)) == len(config.person_secrets)


def binding_of_secrets(config: McpServerConfig) -> str:
    """A digest of the kind and the URL, which may hold secrets itself."""
    return hashlib.sha256(f"{config.kind} {config.url}".encode("utf-8", "surrogatepass")).hexdigest()
