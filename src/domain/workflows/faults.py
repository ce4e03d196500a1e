"""Faults of a workflow definition."""

from dataclasses import dataclass
from enum import StrEnum


class FaultCode(StrEnum):
    """Codes of faults. The values are part of the public contract."""

    NAME_INVALID = "name_invalid"
    UNKNOWN_TEAM = "unknown_team"
    TOO_LARGE = "too_large"
    NODE_ID_INVALID = "node_id_invalid"
    DUPLICATE_NODE = "duplicate_node"
    UNKNOWN_KIND = "unknown_kind"
    UNKNOWN_MODE = "unknown_mode"
    NOT_A_TOOL = "not_a_tool"
    CONFIG_INVALID = "config_invalid"
    ENTRYPOINT_COUNT = "entrypoint_count"
    UNKNOWN_NODE = "unknown_node"
    UNKNOWN_HANDLE = "unknown_handle"
    DUPLICATE_EDGE = "duplicate_edge"
    EDGE_INTO_ENTRYPOINT = "edge_into_entrypoint"
    TOOL_EDGE_SOURCE = "tool_edge_source"
    TOOL_EDGE_TARGET = "tool_edge_target"
    TOOL_EDGE_HANDLE = "tool_edge_handle"
    CYCLE = "cycle"
    UNREACHABLE = "unreachable"
    UNKNOWN_REFERENCE = "unknown_reference"
    REFERENCE_NOT_UPSTREAM = "reference_not_upstream"
    REFERENCE_WITHOUT_OUTPUT = "reference_without_output"
    TOOL_NAME_CLASH = "tool_name_clash"
    EXPRESSION_INVALID = "expression_invalid"
    SCHEMA_INVALID = "schema_invalid"
    UNKNOWN_AGENT = "unknown_agent"
    UNKNOWN_SERVER = "unknown_server"
    UNKNOWN_SECRET = "unknown_secret"
    TOOL_NOT_PERMITTED = "tool_not_permitted"
    TOOL_NOT_WIRED = "tool_not_wired"
    EXPRESSION_SCOPE = "expression_scope"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: a sentence, the affected nodes, and the location.

    `path` is within the first node (`config.url`) if nodes are named, otherwise within the
    definition (`edges.3`, `team`). It is empty for faults of the graph.
    """

    code: FaultCode
    message: str
    node_ids: tuple[str, ...]
    path: str = ""
