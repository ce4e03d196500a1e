"""A node that waits for an account of the person who started its workflow run: the question, and what it waits for."""

from dataclasses import dataclass
from datetime import datetime

from domain.ids import McpServerId
from domain.json_value import JsonObject, JsonValue

ACCEPT, DECLINE = "accept", "decline"
ACCOUNT_DECLINED = "account_declined"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountWait:
    """An account at the server that was connected, or renewed, at `since` or later."""

    server_id: McpServerId
    since: datetime

    def question(self, prompt: str, url: str) -> JsonObject:
        """What is asked: as of a person, who visits `url`, and then accepts or declines."""
        account: JsonObject = {"server_id": self.server_id, "since": self.since.isoformat()}
        return {"prompt": prompt, "url": url, "schema": {"enum": [ACCEPT, DECLINE]}, "account": account}


def account_wait_of(asked: JsonValue) -> AccountWait | None:
    """What a question waits for; None if it asks for something else."""
    match asked:
        case {"account": {"server_id": str(server_id), "since": str(since)}}:
            return AccountWait(server_id=McpServerId(server_id), since=datetime.fromisoformat(since))
        case _:
            return None
