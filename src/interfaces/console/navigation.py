"""The sidebar: its groups, and of each page its icon, the permission to see it and the key that
leads there."""

from dataclasses import dataclass

from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from interfaces.console_paths import PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """`key` follows `g` on the keyboard. `permission` is None where every role may read the page;
    `others` are paths below which the page is marked as the current one, too."""

    name: str
    path: str
    icon: str
    key: str
    permission: Permission | None = None
    others: tuple[str, ...] = ()

    def is_for(self, principal: Principal) -> bool:
        return self.permission is None or principal.may(self.permission)

    def has(self, path: str) -> bool:
        """Whether the page at this path belongs here."""
        if self.path == PATH:
            return path.rstrip("/") == PATH
        return path.startswith((self.path, *self.others))


NAVIGATION: tuple[tuple[str, tuple[Destination, ...]], ...] = (
    ("", (Destination(name="Overview", path=PATH, icon="layout-dashboard", key="o"),)),
    (
        "Build",
        (
            Destination(name="Chat", path=f"{PATH}/chat", icon="message-square", key="c"),
            Destination(name="Agents", path=f"{PATH}/agents", icon="bot", key="a"),
            Destination(name="MCP servers", path=f"{PATH}/servers", icon="server", key="s"),
            Destination(name="Workflows", path=f"{PATH}/workflows", icon="workflow", key="w"),
        ),
    ),
    (
        "Operate",
        (
            Destination(name="Inbox", path=f"{PATH}/inbox", icon="inbox", key="i", others=(f"{PATH}/approvals",)),
            Destination(name="Runs", path=f"{PATH}/runs", icon="activity", key="r", others=(f"{PATH}/compare",)),
            Destination(name="Queue", path=f"{PATH}/queue", icon="list-ordered", key="q"),
            Destination(name="Schedules", path=f"{PATH}/schedules", icon="calendar-clock", key="h"),
            Destination(name="Threads", path=f"{PATH}/threads", icon="messages-square", key="t"),
            Destination(name="Gateway", path=f"{PATH}/gateway", icon="plug", key="g", permission=Permission.RUNS_START),
            Destination(name="Webhooks", path=f"{PATH}/webhooks", icon="webhook", key="d"),
            Destination(name="My accounts", path=f"{PATH}/accounts", icon="circle-user", key="m"),
            Destination(name="My sessions", path=f"{PATH}/sessions", icon="monitor-smartphone", key="n"),
        ),
    ),
    (
        "Govern",
        (
            Destination(name="Usage", path=f"{PATH}/usage", icon="chart-column", key="u"),
            Destination(name="Budgets", path=f"{PATH}/budgets", icon="wallet", key="b"),
            Destination(name="Audit", path=f"{PATH}/audit", icon="scroll-text", key="l"),
            Destination(
                name="People", path=f"{PATH}/people", icon="users", key="p", permission=Permission.USERS_MANAGE
            ),
            Destination(
                name="API keys", path=f"{PATH}/keys", icon="key-round", key="k", permission=Permission.KEYS_MANAGE
            ),
            Destination(
                name="Settings",
                path=f"{PATH}/settings",
                icon="settings",
                key="e",
                permission=Permission.ORGANIZATION_MANAGE,
                others=(f"{PATH}/secrets", f"{PATH}/model-providers"),
            ),
        ),
    ),
)
"""Groups of the sidebar, with their pages."""
