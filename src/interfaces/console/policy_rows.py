"""Tool policies as rows of a form, and back."""

from collections.abc import Mapping
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.policy.rules import MAX_PATTERN_LENGTH
from interfaces.console.form_values import FormValues, text
from interfaces.console.pages import pretty
from interfaces.http.tool_policy_views import ToolRuleView

PREFIX = "rule"
WHOLE = ("max_calls", "max_results", "max_result_bytes", "approvals_needed")
NUMBERS = ("timeout_s", "approval_ttl_s")
SWITCHES = ("idempotent", "allow_self_approval")
CHOICES = ("decision", "on_block", "on_unknown_outcome")
APPROVERS = {"approver_people": "people", "approver_groups": "groups"}
"""Fields of the form, and of `approvers`."""
WHEN_WORDS = {"when_people": "people", "when_groups": "groups", "when_days": "days"}
WHEN = {"when_hours": "hours", "when_time_zone": "time_zone"}
"""Fields of the form, and of `when`."""
_RULE = "tool_policies."
_YES, _NO = "yes", "no"


def policy_values(policies: Mapping[str, ToolRuleView]) -> dict[str, str]:
    values: dict[str, str] = {}
    for index, (pattern, rule) in enumerate(policies.items()):
        values |= {f"{PREFIX}.r{index}.{name}": value for name, value in _rule_values(pattern, rule).items()}
    return values


def _rule_values(pattern: str, rule: ToolRuleView) -> dict[str, str]:
    allowed = rule.get("allowed_params")
    values = {"pattern": pattern, "allowed": "any" if allowed is None else "these" if allowed else "none"}
    values |= {"allowed_names": ", ".join(allowed or ()), "denied_params": ", ".join(rule.get("denied_params") or ())}
    values |= {name: text(rule.get(name)) for name in (*CHOICES, *WHOLE, *NUMBERS)}
    for name in SWITCHES:
        said = rule.get(name)
        values[name] = "" if said is None else _YES if said else _NO
    approvers = cast("Mapping[str, list[str]]", rule.get("approvers") or {})
    values |= {name: ", ".join(approvers.get(kind, ())) for name, kind in APPROVERS.items()}
    when = cast("Mapping[str, list[str] | str]", rule.get("when") or {})
    values |= {name: ", ".join(when.get(kind, ())) for name, kind in WHEN_WORDS.items()}
    values |= {name: text(when.get(kind)) for name, kind in WHEN.items()}
    schema = rule.get("arguments_schema")
    values["arguments_schema"] = "" if schema is None else pretty(schema)
    if rule.get("overridable"):
        values["overridable"] = "on"
    return values


def policies_body(form: FormValues) -> dict[str, JsonValue]:
    """`tool_policies` of the API. Empty rows are skipped."""
    policies: dict[str, JsonValue] = {}
    for row in form.rows(PREFIX):
        rule = _rule_body(form, row)
        pattern = form[f"{PREFIX}.{row}.pattern"].strip()
        if not pattern:
            if rule:
                form.note(f"{PREFIX}.{row}.pattern", "is required: the name of a tool, or a glob such as mcp__git__*")
            continue
        if pattern in policies:
            form.note(f"{PREFIX}.{row}.pattern", "is the name of another rule too")
        policies[pattern] = rule
    return policies


def _rule_body(form: FormValues, row: str) -> JsonObject:
    def field(name: str) -> str:
        return f"{PREFIX}.{row}.{name}"

    rule: dict[str, JsonValue] = {name: form[field(name)] for name in CHOICES if form[field(name)]}
    allowed = form[field("allowed")]
    if allowed in ("none", "these"):
        rule["allowed_params"] = form.words(field("allowed_names")) if allowed == "these" else []
    if denied := form.words(field("denied_params")):
        rule["denied_params"] = denied
    rule |= {name: form[field(name)] == _YES for name in SWITCHES if form[field(name)]}
    rule |= {name: count for name in WHOLE if (count := form.whole(field(name))) is not None}
    rule |= {name: number for name in NUMBERS if (number := form.number(field(name))) is not None}
    approvers = {kind: words for name, kind in APPROVERS.items() if (words := form.words(field(name)))}
    if approvers:
        rule["approvers"] = {**approvers}
    when: dict[str, JsonValue] = {
        kind: words for name, kind in WHEN_WORDS.items() if (words := form.words(field(name)))
    }
    when |= {kind: said for name, kind in WHEN.items() if (said := form[field(name)].strip())}
    if when:
        rule["when"] = when
    if (schema := form.json_object(field("arguments_schema"))) is not None:
        rule["arguments_schema"] = schema
    if form.has(field("overridable")):
        rule["overridable"] = True
    return rule


def rule_field(form: FormValues, path: str) -> str | None:
    """The field of `tool_policies.PATTERN.FIELD`, or None."""
    if not path.startswith(_RULE):
        return None
    rest = path.removeprefix(_RULE)
    best: tuple[int, str] | None = None
    for row in form.rows(PREFIX):
        pattern = form[f"{PREFIX}.{row}.pattern"].strip()[:MAX_PATTERN_LENGTH]
        if pattern and (rest == pattern or rest.startswith(f"{pattern}.")) and (best is None or len(pattern) > best[0]):
            name, _, part = rest[len(pattern) + 1 :].partition(".")
            name = f"when_{part.partition('.')[0]}" if name == "when" and part else name or "pattern"
            best = (len(pattern), f"{PREFIX}.{row}.{_SHOWN_AS.get(name, name)}")
    return None if best is None else best[1]


_SHOWN_AS = {"allowed_params": "allowed_names", "approvers": "approver_groups", "when": "when_groups"}
