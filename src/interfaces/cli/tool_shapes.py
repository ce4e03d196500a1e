"""What explanations of tools look like to the CLI."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLayer:
    """What one layer says: whether its allowlist has the tool, and its rules by pattern."""

    layer: str
    in_allowlist: bool | None = None
    rules: dict[str, dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTool:
    """Why an agent's tool is allowed, asked for, blocked or hidden."""

    name: str
    agent: str
    agent_version: int
    standing: str
    server: str | None = None
    reasons: tuple[str, ...]
    layers: tuple[ExplainedLayer, ...]
