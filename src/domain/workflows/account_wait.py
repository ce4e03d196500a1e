"""A node that waits for an account of the person who started its workflow run: the question, and
what it waits for."""

from dataclasses import dataclass
from datetime import datetime

from domain.ids import McpServerId
from domain.json_value import JsonObject, JsonValue

ACCEPT, DECLINE = "accept", "decline"
ACCOUNT_DECLINED = "account_declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountWait:
    """An account at the server that was connected, or renewed, at `since` or later. The question is
    asked for the `number`th time during one attempt; `due_at` is when the first one was due."""

    server_id: McpServerId
    since: datetime
    number: int = 1
    due_at: datetime | None = None

    def question(self, prompt: str, url: str) -> JsonObject:
        """What is asked: as of a person, who visits `url`, and then accepts or declines."""
        due_at = None if self.due_at is None else self.due_at.isoformat()
        account: JsonObject = {
            "server_id": self.server_id,
            "since": self.since.isoformat(),
            "number": self.number,
            "due_at": due_at,
        }
        return {"prompt": prompt, "url": url, "schema": {"enum": [ACCEPT, DECLINE]}, "account": account}


def account_wait_of(asked: JsonValue) -> AccountWait | None:
    """What a question waits for; None if it asks for something else."""
    match asked:
        case {"account": {"server_id": str(server_id), "since": str(since), **rest}}:
            number, due_at = rest.get("number"), rest.get("due_at")
            return AccountWait(
                server_id=McpServerId(server_id),
                since=datetime.fromisoformat(since),
                number=number if isinstance(number, int) else 1,
                due_at=datetime.fromisoformat(due_at) if isinstance(due_at, str) else None,
            )
        case _:
            return None
