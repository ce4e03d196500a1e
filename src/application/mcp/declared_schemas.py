"""Schemas of declared tools must be usable: their calls are validated by nothing else."""

from application.policy.ports import SchemaValidator
from domain.errors import Violation, invalid
from domain.mcp.server import McpServerConfig


def require_usable_schemas(schemas: SchemaValidator, config: McpServerConfig) -> None:
    """Raises INVALID `mcp_server_invalid`."""
    wrong = [
        Violation(path=f"declared_tools.{index}.{field}", message=problem)
        for index, tool in enumerate(config.declared_tools)
        for field, schema in (("parameters", tool.parameters), ("output_schema", tool.output_schema))
        if schema is not None and (problem := schemas.problem_with(schema)) is not None
    ]
    if wrong:
        raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)
