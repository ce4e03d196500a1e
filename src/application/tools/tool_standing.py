"""The policy outcome of a tool for an agent, apart from arguments, and sentences that describe
it."""

from enum import StrEnum

from domain.policy.layers import PolicyLayer, Source, ToolPolicy
from domain.policy.rules import OnBlock, Verdict
from domain.policy.selection import Selected


class ToolStanding(StrEnum):
    """The policy outcome of a tool. Calls of a `hidden` tool are answered as calls of an unknown
    tool."""

    ALLOWED = "allowed"
    ASKED_FOR = "asked_for"
    BLOCKED = "blocked"
    HIDDEN = "hidden"

    @property
    def words(self) -> str:
        """As people read it."""
        return "requires approval" if self is ToolStanding.ASKED_FOR else self.value


_STANDINGS = {
    Verdict.ALLOW: ToolStanding.ALLOWED,
    Verdict.REQUIRE_APPROVAL: ToolStanding.ASKED_FOR,
    Verdict.DENY: ToolStanding.BLOCKED,
}


def standing_of(policy: ToolPolicy, *, is_listed: bool) -> tuple[ToolStanding, Source]:
    """The outcome and its source. A tool that the agent does not list is hidden."""
    if not is_listed:
        return ToolStanding.HIDDEN, Source(layer=PolicyLayer.AGENT)
    if policy.hidden_by is not None:
        return ToolStanding.HIDDEN, Source(layer=policy.hidden_by)
    return _STANDINGS[policy.decision], policy.source_of("decision")


def standing_sentence(standing: ToolStanding, by: Source, *, is_listed: bool) -> str:
    """The outcome, its layer and its rule."""
    if not is_listed:
        return "Hidden: the agent lists neither the tool nor its MCP server."
    if standing is ToolStanding.HIDDEN:
        return f"Hidden: the {by.layer.value}'s tool_allowlist does not have it."
    said = {
        ToolStanding.ALLOWED: "Allowed",
        ToolStanding.ASKED_FOR: "Requires approval: a person decides about each call",
        ToolStanding.BLOCKED: "Blocked: the model is not shown it, and its calls are refused",
    }[standing]
    return f"{said}, {source_words(by)}."


def overruled_sentences(
    said: tuple[tuple[PolicyLayer, Selected], ...], policy: ToolPolicy, standing: ToolStanding
) -> tuple[str, ...]:
    """Sentences about denials that win over more exact rules of their layer."""
    if standing is not ToolStanding.BLOCKED:
        return ()
    denying = policy.sources["decision"]
    sentences = []
    for layer, selected in said:
        if not any(source.layer is layer for source in denying):
            continue
        others = [pattern for pattern, rule in selected if rule.decision not in (Verdict.DENY, Verdict.ALLOW)]
        if others:
            rules = " and ".join(
                source_words(Source(layer=layer, pattern=pattern)).removeprefix("by ") for pattern in others
            )
            sentences.append(
                f"The denial wins over {rules}: only a more specific decision: allow would permit the tool."
            )
    return tuple(sentences)


def source_words(source: Source) -> str:
    """For example: `by the organization's rule mcp__git__*`."""
    if source.layer is PolicyLayer.BUILT_IN:
        return "by default"
    rule = "" if source.pattern is None else f"'s rule {source.pattern}"
    return f"by the {source.layer.value}{rule}"


def restrictions(policy: ToolPolicy, standing: ToolStanding) -> tuple[str, ...]:
    """Further limits, one sentence each; none for a hidden tool."""
    if standing is ToolStanding.HIDDEN:
        return ()
    said: list[tuple[str, str]] = []
    if policy.denied_params:
        said.append(("denied_params", f"The parameters {_names(policy.denied_params)} are denied"))
    if policy.allowed_params is not None:
        allowed = (
            f"Only the parameters {_names(policy.allowed_params)} are" if policy.allowed_params else "No parameter is"
        )
        said.append(("allowed_params", f"{allowed} allowed"))
    if policy.constraints:
        said.append(("arguments_schema", "Arguments are held against a JSON Schema"))
    if policy.max_calls is not None:
        said.append(("max_calls", f"At most {policy.max_calls} calls in a run"))
    if policy.max_results is not None:
        said.append(("max_results", f"At most {policy.max_results} results of a call"))
    if policy.max_result_bytes is not None:
        said.append(("max_result_bytes", f"At most {policy.max_result_bytes} bytes of a result's text"))
    if policy.timeout_s is not None:
        said.append(("timeout_s", f"At most {policy.timeout_s:g} seconds for a call"))
    if policy.on_block is OnBlock.HALT:
        said.append(("on_block", "A blocked call ends the run"))
    return tuple(f"{what}, {' and '.join(map(source_words, policy.sources[name]))}." for name, what in said)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
