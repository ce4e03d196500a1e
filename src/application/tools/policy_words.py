"""Clauses of warnings about policy rules without effect, without capital letter and full stop."""

from application.tools.tool_standing import source_words
from domain.policy.idle_rules import IdleReason, IdleStatement
from domain.policy.layers import PolicyLayer
from domain.policy.replaced_rules import ReplacedStatement


def idle_words(statement: IdleStatement, layer: PolicyLayer) -> str:
    """Why a rule of `layer`, or some of its fields, has no effect."""
    by = " and ".join(map(source_words, statement.by))
    what = ", ".join(statement.fields)
    match statement.reason:
        case IdleReason.NO_TOOL:
            return "fits no tool"
        case IdleReason.MORE_SPECIFIC:
            return f"holds for no tool: all that it fits are decided {by}, which is more specific"
        case IdleReason.HIDDEN:
            return f"has no effect: all tools that it holds for are hidden {by}"
        case IdleReason.DENIED:
            return f"has no effect in {what}: all tools that it holds for are denied {by}"
        case IdleReason.ALREADY_SAID:
            if all(source.layer is layer for source in statement.by):
                return f"has no effect in {what}: that is decided {by}, which is as strict or stricter"
            return f"has no effect in {what}: that is decided {by}, and layers only tighten each other"


def replaced_words(statement: ReplacedStatement) -> str:
    """The fields of a rule that another one replaces, and the remedy."""
    what, by = ", ".join(statement.fields), " and ".join(statement.by)
    return f"{what} not in force for {statement.name}: {by} is more specific and takes its place; repeat there what is to hold"
