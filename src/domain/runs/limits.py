"""Limits of a run, and how the limits of several layers combine."""

from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import TypeVar

from domain.errors import Violation, invalid
from domain.runs.usage import Usage

_Number = TypeVar("_Number", int, float, Decimal)


def _tighter(mine: _Number | None, theirs: _Number | None) -> _Number | None:
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return min(mine, theirs)


class IncompleteReason(StrEnum):
    """Why a run ended `incomplete`: the limit that it reached, or the reason why the last reply is
    incomplete."""

    MAX_TURNS = "max_turns"
    MAX_TOOL_CALLS = "max_tool_calls"
    MAX_TOKENS = "max_tokens"
    MAX_COST = "max_cost_usd"
    TIMEOUT = "timeout"
    DAILY_BUDGET = "daily_budget_usd"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    CONTEXT_EXCEEDED = "context_exceeded"

    @property
    def explanation(self) -> str:
        """The reason for people, as text after a colon."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    IncompleteReason.MAX_TURNS: "the run reached its limit of turns",
    IncompleteReason.MAX_TOOL_CALLS: "the run reached its limit of tool calls",
    IncompleteReason.MAX_TOKENS: "the run reached its limit of tokens",
    IncompleteReason.MAX_COST: "the run reached its limit of cost",
    IncompleteReason.TIMEOUT: "the run reached its time limit",
    IncompleteReason.DAILY_BUDGET: "the daily budget is used up",
    IncompleteReason.MAX_OUTPUT_TOKENS: "the model's answer was cut at its output limit",
    IncompleteReason.CONTENT_FILTER: "the model provider's content filter stopped the answer",
    IncompleteReason.REFUSAL: "the model refused to answer",
    IncompleteReason.CONTEXT_EXCEEDED: "the conversation filled the model's context window",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits of one layer (organization, agent, run). None leaves the limit to the other layers."""

    max_turns: int | None = None
    max_tool_calls: int | None = None
    max_calls_per_turn: int | None = None
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    context_tokens: int | None = None
    timeout_s: float | None = None
    turn_tool_timeout_s: float | None = None
    tool_timeout_s: float | None = None
    model_attempts: int | None = None
    model_retry_s: float | None = None

    def __post_init__(self) -> None:
        wrong = [
            Violation(path=f"limits.{name}", message="must be greater than 0")
            for name, value in zip(_NAMES, _stated(self), strict=True)
            if value is not None and value <= 0
        ]
        if wrong:
            raise invalid("limits_invalid", "Limits must be positive.", *wrong)

    def narrowed_by(self, other: "LimitSettings") -> "LimitSettings":
        """The tighter value of each limit."""
        if _stated(other) == _NOTHING:
            return self
        if _stated(self) == _NOTHING:
            return other
        return LimitSettings(
            max_turns=_tighter(self.max_turns, other.max_turns),
            max_tool_calls=_tighter(self.max_tool_calls, other.max_tool_calls),
            max_calls_per_turn=_tighter(self.max_calls_per_turn, other.max_calls_per_turn),
            max_tokens=_tighter(self.max_tokens, other.max_tokens),
            max_cost_usd=_tighter(self.max_cost_usd, other.max_cost_usd),
            context_tokens=_tighter(self.context_tokens, other.context_tokens),
            timeout_s=_tighter(self.timeout_s, other.timeout_s),
            turn_tool_timeout_s=_tighter(self.turn_tool_timeout_s, other.turn_tool_timeout_s),
            tool_timeout_s=_tighter(self.tool_timeout_s, other.tool_timeout_s),
            model_attempts=_tighter(self.model_attempts, other.model_attempts),
            model_retry_s=_tighter(self.model_retry_s, other.model_retry_s),
        )


_NAMES = tuple(field.name for field in fields(LimitSettings))
_NOTHING = (None,) * len(_NAMES)
_stated = attrgetter(*_NAMES)
"""The values in the order of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The effective limits of a run. `max_turns` is the number of model calls whose tool calls are
    executed; the closing turn is one more. Times are seconds; `timeout_s` counts active time only.
    `model_attempts` and `model_retry_s` bound the tries of one model call and the waits between
    them."""

    max_turns: int = 10
    max_tool_calls: int | None = None
    max_calls_per_turn: int = 64
    max_tokens: int | None = None
    max_cost_usd: Decimal | None = None
    context_tokens: int = 128_000
    timeout_s: float = 600.0
    turn_tool_timeout_s: float = 120.0
    tool_timeout_s: float = 30.0
    model_attempts: int = 20
    model_retry_s: float = 180.0

    @classmethod
    def of(cls, settings: LimitSettings) -> "Limits":
        """The settings, with defaults for missing values."""
        if _stated(settings) == _NOTHING:
            return _DEFAULT
        default = _DEFAULT
        return cls(
            max_turns=settings.max_turns or default.max_turns,
            max_tool_calls=settings.max_tool_calls,
            max_calls_per_turn=settings.max_calls_per_turn or default.max_calls_per_turn,
            max_tokens=settings.max_tokens,
            max_cost_usd=settings.max_cost_usd,
            context_tokens=settings.context_tokens or default.context_tokens,
            timeout_s=settings.timeout_s or default.timeout_s,
            turn_tool_timeout_s=settings.turn_tool_timeout_s or default.turn_tool_timeout_s,
            tool_timeout_s=settings.tool_timeout_s or default.tool_timeout_s,
            model_attempts=settings.model_attempts or default.model_attempts,
            model_retry_s=settings.model_retry_s or default.model_retry_s,
        )

    @property
    def closing_time_s(self) -> float:
        """Active time reserved for the closing turn, so that a run that times out can still
        answer."""
        return min(30.0, self.timeout_s * 0.1)

    def reached_by(self, usage: Usage, *, active_s: float, reserve: "Reserve") -> IncompleteReason | None:
        """The limit that forbids tool calls and another ordinary turn, if any. (`max_turns` forbids
        turns only, `max_tool_calls` calls only.)

        `reserve` is the expected use of the closing turn. Tokens and cost must leave room for it
        and for the next ordinary turn.
        """
        if self.max_tokens is not None and usage.tokens + reserve.tokens * 2 > self.max_tokens:
            return IncompleteReason.MAX_TOKENS
        if self.max_cost_usd is not None and usage.cost_usd + reserve.cost_usd * 2 > self.max_cost_usd:
            return IncompleteReason.MAX_COST
        if active_s >= self.timeout_s - self.closing_time_s:
            return IncompleteReason.TIMEOUT
        return None

    def has_turns_left(self, usage: Usage) -> bool:
        """Whether another ordinary turn may begin."""
        return usage.turns < self.max_turns

    def tool_calls_left(self, usage: Usage) -> int | None:
        """How many more calls may be executed; None without a limit."""
        return None if self.max_tool_calls is None else max(0, self.max_tool_calls - usage.tool_calls)

    def allow_closing_turn(self, usage: Usage, *, active_s: float, reserve: "Reserve") -> bool:
        """Whether the closing turn fits into the remaining limits."""
        if self.max_tokens is not None and usage.tokens + reserve.tokens > self.max_tokens:
            return False
        if self.max_cost_usd is not None and usage.cost_usd + reserve.cost_usd > self.max_cost_usd:
            return False
        return active_s < self.timeout_s


_DEFAULT = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Largest expected use of one model call over the present context."""

    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
