"""The kinds of things that commands refer to: prefix of their ids, list in the API, command that
lists them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`what` is the word of the API's messages. `name` is the field with the name, which is
    accepted instead of the id. `shown_by` is the command that shows one, `listed_by` the one that
    lists all."""

    what: str
    prefix: str
    path: str
    name: str | None = None
    shown_by: str | None = None
    listed_by: str | None = None
    listed_of: str | None = None
    """The command that lists those of one thread or run, where nothing lists all."""

    @property
    def one(self) -> str:
        """The word with its article."""
        return f"{'an' if self.what[0] in 'aeioAM' else 'a'} {self.what}"

    @property
    def not_found(self) -> str:
        """The code of the API's problem when there is none of that name or id."""
        return f"{self.what.lower().replace(' ', '_')}_not_found"


KINDS = (
    Kind(what="agent", prefix="agt", path="agents", name="name", shown_by="agent show", listed_by="agent list"),
    Kind(what="run", prefix="run", path="runs", shown_by="run show", listed_by="run list"),
    Kind(what="thread", prefix="thr", path="threads", shown_by="thread show", listed_by="thread list"),
    Kind(what="MCP server", prefix="mcp", path="mcp-servers", name="slug", shown_by="mcp show", listed_by="mcp list"),
    Kind(what="approval", prefix="apr", path="approvals", shown_by="approval show", listed_by="approval list"),
    Kind(
        what="schedule",
        prefix="sch",
        path="schedules",
        name="name",
        shown_by="schedule show",
        listed_by="schedule list",
    ),
    Kind(
        what="workflow",
        prefix="wfl",
        path="workflows",
        name="name",
        shown_by="workflow show",
        listed_by="workflow list",
    ),
    Kind(
        what="workflow run",
        prefix="wfr",
        path="workflow-runs",
        shown_by="workflow run-show",
        listed_by="workflow runs",
    ),
    Kind(what="API key", prefix="key", path="api-keys", listed_by="key list"),
    Kind(what="user", prefix="usr", path="users", shown_by="user show", listed_by="user list"),
    Kind(what="session", prefix="ses", path="sessions", listed_by="session list"),
    Kind(what="group", prefix="grp", path="groups", name="name", shown_by="group show", listed_by="group list"),
    Kind(
        what="identity provider",
        prefix="idp",
        path="identity-providers",
        name="name",
        shown_by="idp show",
        listed_by="idp list",
    ),
    Kind(what="gateway session", prefix="gws", path="gateway-sessions", listed_by="gateway list"),
    Kind(what="organization", prefix="org", path="organizations", listed_by="org list"),
    Kind(what="model provider", prefix="", path="model-providers", name="name", listed_by="provider list"),
    Kind(what="role", prefix="", path="roles", name="name", shown_by="role show", listed_by="role list"),
    Kind(what="secret", prefix="", path="secrets", name="name", listed_by="secret list"),
    Kind(what="source", prefix="", path="", listed_of="source list THREAD"),
    Kind(what="webhook delivery", prefix="", path="", listed_of="webhook list RUN"),
    Kind(what="tool", prefix="", path="tools", name="name", listed_by="tool list"),
)
BY_PREFIX = {kind.prefix: kind for kind in KINDS if kind.prefix}
BY_CODE = {kind.not_found: kind for kind in KINDS}


def kind_of(reference: str) -> Kind | None:
    """The kind that an id, or the beginning of one, belongs to; None for other texts."""
    prefix, separator, rest = reference.partition("_")
    return BY_PREFIX.get(prefix) if separator and rest.isalnum() else None
