"""Permissions: what a role lets its holders do, besides reading."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Permission(StrEnum):
    """One kind of act. Every role reads. Identity providers and directories need the role `admin`,
    because they decide who gets which role."""

    RUNS_START = "runs.start"
    RUNS_CONTROL = "runs.control"
    APPROVALS_DECIDE = "approvals.decide"
    THREADS_RELEASE = "threads.release"
    SERVERS_OPERATE = "servers.operate"
    GATEWAY_OPEN = "gateway.open"
    WEBHOOKS_RETRY = "webhooks.retry"
    AGENTS_MANAGE = "agents.manage"
    SERVERS_MANAGE = "servers.manage"
    WORKFLOWS_MANAGE = "workflows.manage"
    SCHEDULES_MANAGE = "schedules.manage"
    MODELS_MANAGE = "models.manage"
    SECRETS_MANAGE = "secrets.manage"
    WEBHOOKS_MANAGE = "webhooks.manage"
    ORGANIZATION_MANAGE = "organization.manage"
    KEYS_MANAGE = "keys.manage"
    USERS_MANAGE = "users.manage"
    GROUPS_MANAGE = "groups.manage"
    ROLES_MANAGE = "roles.manage"


DESCRIPTIONS: Mapping[Permission, str] = MappingProxyType(
    {
        Permission.RUNS_START: "Create threads, sources and runs, start workflows, and cancel or resume own runs.",
        Permission.RUNS_CONTROL: "Cancel, resume, requeue and delete runs, threads and sources of others.",
        Permission.APPROVALS_DECIDE: "Decide approvals.",
        Permission.THREADS_RELEASE: "Release threads from quarantine.",
        Permission.SERVERS_OPERATE: "Connect, disconnect and refresh MCP servers, and read their logs.",
        Permission.GATEWAY_OPEN: "Open gateway sessions, and revoke those of others.",
        Permission.WEBHOOKS_RETRY: "Deliver webhooks again.",
        Permission.AGENTS_MANAGE: "Create, change and delete agents.",
        Permission.SERVERS_MANAGE: "Register, install, change and delete MCP servers and registries; approve tool"
        " definitions.",
        Permission.WORKFLOWS_MANAGE: "Create, change and delete workflows.",
        Permission.SCHEDULES_MANAGE: "Create, change and delete schedules.",
        Permission.MODELS_MANAGE: "Create, change and delete model providers.",
        Permission.SECRETS_MANAGE: "List, set and delete secrets.",
        Permission.WEBHOOKS_MANAGE: "Replace the signing key of webhooks.",
        Permission.ORGANIZATION_MANAGE: "Change the settings, policies and limits of the organization.",
        Permission.KEYS_MANAGE: "List, create and revoke API keys.",
        Permission.USERS_MANAGE: "List users, and change their role and access.",
        Permission.GROUPS_MANAGE: "Manage groups, and with them who is an approver.",
        Permission.ROLES_MANAGE: "Create, change and delete custom roles.",
    }
)

NEEDED_FOR: Mapping[Permission, frozenset[Permission]] = MappingProxyType(
    {
        # What they start acts as an operator, no matter who set it up.
        Permission.SCHEDULES_MANAGE: frozenset({Permission.RUNS_START, Permission.RUNS_CONTROL}),
        Permission.WORKFLOWS_MANAGE: frozenset({Permission.RUNS_START, Permission.RUNS_CONTROL}),
        # A session starts runs of agents that call agents.
        Permission.GATEWAY_OPEN: frozenset({Permission.RUNS_START}),
        Permission.RUNS_CONTROL: frozenset({Permission.RUNS_START}),
    }
)
"""A role with the permission has these, too: it would have their effects without them."""
