"""Secrets that a person gave for an MCP server: bound to its address or its program, so that
nothing else gets them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.server import McpServer, McpServerConfig
from domain.secrets.secret import SecretRef, SecretValue

MAX_GIVEN_BYTES = 8 * 1024
"""Of one value: it goes into a header, a URL or a variable."""


class AccountOwner(NamedTuple):
    """A person, and the server that acts for them."""

    organization_id: OrganizationId
    server_id: McpServerId
    person_id: UserId


def account_owner(server: McpServer) -> AccountOwner | None:
    """Who gives the secrets that the server uses; None if it acts for no person. The test of a
    saved server uses those of the saved one."""
    if server.person_id is None:
        return None
    return AccountOwner(server.organization_id, server.tested_id or server.id, server.person_id)


def is_process_of_person(server: McpServer) -> bool:
    """Whether the server is a process that is started for the person it acts for, and ends with
    their secrets."""
    return server.person_id is not None and not server.config.kind.is_remote


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSecrets:
    """`binding` is the address or the program for which they were given, `revision` changes with
    each change of a value."""

    binding: str
    revision: str
    given_at: datetime
    values: Mapping[str, str] = field(repr=False)

    def of(self, config: McpServerConfig) -> Mapping[str, str]:
        """Those that the server may get, by name: what it names, where they were given for it."""
        if self.binding != binding_of_secrets(config):
            return {}
        return {name: self.values[name] for name in config.person_secrets if name in self.values}

    def is_complete(self, config: McpServerConfig) -> bool:
        """Whether the server has all that it needs."""
        return len(self.of(config)) == len(config.person_secrets)


def binding_of_secrets(config: McpServerConfig) -> str:
    """A digest of what decides who gets the secrets, which may hold secrets itself: the kind and
    the URL; of a started server its program with its arguments and its variables, which may name a
    host, or a place that it tells. Another version is the same program."""
    text = f"{config.kind} {config.url}"
    if not config.kind.is_remote:
        variables = {name: _bound(value) for name, value in config.env.items()}
        program = [config.kind, config.package, config.path, config.command, config.args, variables]
        text = json.dumps(program, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _bound(value: SecretValue) -> str | list[str]:
    return [value.name] if isinstance(value, SecretRef) else value
