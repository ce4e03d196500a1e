"""Canary tokens in requests, and the stored tokens: ids for those without one, keys for tokens of
each run."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from application.system.ports import IdSource
from domain.agents.agent import AgentSettings
from domain.errors import Violation, invalid
from domain.policy.canary import CanaryToken, token_fault, with_placeholders
from domain.policy.canary_scan import CanaryScanner

ID_PREFIX = "can"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenCanary:
    """An entry of `canary_tokens`. An id alone is the agent's stored token, which clients cannot
    read. `per_run` creates a token for each run."""

    id: str | None = None
    token: str | None = field(default=None, repr=False)
    per_run: bool = False


def with_canaries(
    settings: AgentSettings, given: Sequence[GivenCanary] | None, known: Sequence[CanaryToken], *, ids: IdSource
) -> AgentSettings:
    """The settings with these tokens (None: unchanged ones), and with placeholders for tokens in
    the instructions, because instructions are shown. Raises INVALID `agent_invalid`, without
    quoting a token."""
    tokens = settings.canary_tokens if given is None else _resolved(given, known, ids)
    instructions = with_placeholders(settings.instructions, tokens)
    watched = {token.id: token.secret for token in tokens if not token.per_run and not token_fault(token.secret)}
    if watched and CanaryScanner(watched).found_in(instructions):
        message = "hold a canary token in another spelling; write {{canary:ID}} where it is to stand"
        raise invalid("agent_invalid", "The agent is not valid.", Violation(path="instructions", message=message))
    return replace(settings, canary_tokens=tokens, instructions=instructions)


def _resolved(given: Sequence[GivenCanary], known: Sequence[CanaryToken], ids: IdSource) -> tuple[CanaryToken, ...]:
    by_id = {token.id: token for token in known}
    by_secret = {token.secret: token for token in known if not token.per_run}
    tokens: list[CanaryToken] = []
    wrong: list[Violation] = []
    for index, entry in enumerate(given):
        path = f"canary_tokens.{index}"
        if entry.per_run:
            if entry.token is not None:
                wrong.append(Violation(path=f"{path}.token", message="is made for each run; leave it out"))
            before = None if entry.id is None else by_id.get(entry.id)
            secret = before.secret if before is not None and before.per_run else ids.new_token()
            tokens.append(CanaryToken(id=entry.id or ids.new(ID_PREFIX), secret=secret, per_run=True))
        elif entry.token is not None:
            same = by_secret.get(entry.token) if entry.id is None else None
            tokens.append(same or CanaryToken(id=entry.id or ids.new(ID_PREFIX), secret=entry.token))
        elif entry.id is not None and entry.id in by_id:
            tokens.append(by_id[entry.id])
        else:
            wrong.append(Violation(path=f"{path}.token", message="is required: the agent has no token of this id"))
    if wrong:
        raise invalid("agent_invalid", "The agent is not valid.", *wrong)
    return tuple(tokens)
