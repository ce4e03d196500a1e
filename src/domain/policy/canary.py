"""Canary tokens: secret markers that an agent knows and must never emit. Text that contains one is
stopped."""

import base64
import hashlib
import hmac
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from domain.errors import Violation
from domain.ids import RunId
from domain.policy.canary_forms import MIN_FORM, letters

MIN_LENGTH = 8
"""Fewest characters of a token. Shorter ones would occur in base64 by chance."""
MAX_LENGTH = 256
MAX_TOKENS = 32
"""Most tokens of one agent."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PLACEHOLDER = re.compile(r"\{\{\s*canary:([^{}\s]*)\s*\}\}")
_RUN_TOKEN_CHARS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryToken:
    """A token under its id. `secret` is the token itself or, with `per_run`, the key from which
    each run's token is derived. It is never shown."""

    id: str
    secret: str = field(repr=False)
    per_run: bool = False

    def in_run(self, run_id: RunId) -> str:
        """The token of this run. All attempts of the run have the same one."""
        if not self.per_run:
            return self.secret
        digest = hmac.new(self.secret.encode(), run_id.encode(), hashlib.sha256).digest()
        return base64.b32encode(digest).decode()[:_RUN_TOKEN_CHARS].lower()


def placeholder(token_id: str) -> str:
    """The placeholder of the token in an agent's instructions."""
    return f"{{{{canary:{token_id}}}}}"


def mark(token_id: str) -> str:
    """The mark that replaces a found token."""
    return f"[canary:{token_id}]"


def canary_violations(tokens: Sequence[CanaryToken], instructions: str) -> list[Violation]:
    """All violations of an agent's tokens and of the placeholders in its instructions. No message
    quotes a token."""
    wrong: list[Violation] = []
    if len(tokens) > MAX_TOKENS:
        wrong.append(Violation(path="canary_tokens", message=f"must not have more than {MAX_TOKENS} entries"))
    by_id: dict[str, int] = {}
    by_text: dict[str, int] = {}
    for index, token in enumerate(tokens):
        path = f"canary_tokens.{index}"
        if not _ID.fullmatch(token.id):
            wrong.append(
                Violation(path=f"{path}.id", message="must have up to 64 of letters, digits, '_', '.' and '-'")
            )
        elif token.id in by_id:
            wrong.append(Violation(path=f"{path}.id", message=f"is the id of canary_tokens.{by_id[token.id]} too"))
        by_id.setdefault(token.id, index)
        if token.per_run:
            continue
        fault = token_fault(token.secret)
        folded = letters(token.secret)
        if fault is None and folded in by_text:
            fault = f"is the same token as canary_tokens.{by_text[folded]}"
        by_text.setdefault(folded, index)
        if fault is not None:
            wrong.append(Violation(path=path, message=fault))
    for index, token in enumerate(tokens):
        if any(len(text) >= MIN_FORM and text in letters(mark(token.id)) for text in by_text):
            wrong.append(Violation(path=f"canary_tokens.{index}.id", message="must not hold a token: ids are shown"))
    return wrong + (_unknown_placeholders(instructions, by_id) if tokens else [])


def _unknown_placeholders(instructions: str, known: Container[str]) -> list[Violation]:
    unknown = dict.fromkeys(named for named in _PLACEHOLDER.findall(instructions) if named not in known)
    return [
        Violation(path="instructions", message=f"name the canary token {named!r}, which the agent does not have")
        for named in unknown
    ]


def token_fault(token: str) -> str | None:
    """Why a text cannot be a token, without quoting it; None if it can."""
    if not token.strip():
        return "must not be blank"
    if not MIN_LENGTH <= len(token) <= MAX_LENGTH:
        return f"must have between {MIN_LENGTH} and {MAX_LENGTH} characters"
    if not token.isprintable():
        return "must not have line breaks or other characters that cannot be printed"
    if len(letters(token)) < MIN_FORM:
        return f"must have at least {MIN_FORM} letters and digits"
    return None


def with_placeholders(instructions: str, tokens: Sequence[CanaryToken]) -> str:
    """The instructions for display: each literal token is replaced by its placeholder."""
    # Longest first: a token that contains another one is replaced as a whole.
    for token in sorted(tokens, key=lambda entry: len(entry.secret), reverse=True):
        if not token.per_run and token.secret:
            instructions = instructions.replace(token.secret, placeholder(token.id))
    return instructions


def without_placeholders(text: str, tokens: Mapping[str, str]) -> str:
    """The text with tokens (by id) in place of their placeholders; unknown placeholders stay."""
    return _PLACEHOLDER.sub(lambda found: tokens.get(found[1], found[0]), text)
