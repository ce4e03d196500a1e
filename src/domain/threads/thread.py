"""A thread: the conversation that runs of one organization's agents share."""

from dataclasses import dataclass
from datetime import datetime

from domain.ids import OrganizationId, ThreadId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A conversation. Its messages are stored beside it, in order, each once."""

    id: ThreadId
    organization_id: OrganizationId
    metadata: JsonObject
    created_at: datetime
