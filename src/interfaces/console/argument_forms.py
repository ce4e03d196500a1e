"""Forms for the arguments of calls that wait for approval, from the schemas of their tools."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from application.tools.explain_tool import ExplainTool, ExplainToolCommand
from domain.approvals.approval import Approval
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.ids import AgentId, ApprovalId
from domain.json_value import JsonObject, canonical_digest
from interfaces.console.json_text import arguments_of
from interfaces.console.questions import Field, edited, fields_of, filled


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsForm:
    """`schema` is the digest of the schema that the fields are made of; they have the arguments as
    their values."""

    fields: tuple[Field, ...]
    schema: str


class ArgumentForms:
    """A call of a tool that its agent does not have any more has no form: its arguments are
    JSON."""

    def __init__(self, *, explain_tool: ExplainTool) -> None:
        self._explain = explain_tool

    async def of(self, principal: Principal, approvals: Iterable[Approval]) -> dict[ApprovalId, ArgumentsForm]:
        """The forms of these approvals."""
        schemas: dict[tuple[AgentId, str], JsonObject | None] = {}
        forms: dict[ApprovalId, ArgumentsForm] = {}
        for approval in approvals:
            tool = (approval.agent_id, approval.tool)
            if tool not in schemas:
                schemas[tool] = await self._schema_of(principal, approval)
            schema = schemas[tool]
            if schema is not None:
                fields = fields_of(filled(schema, approval.arguments))
                forms[approval.id] = ArgumentsForm(fields=fields, schema=canonical_digest(schema))
        return forms

    async def paths(self, principal: Principal, approval: Approval) -> dict[str, Field]:
        """The fields of the form by their paths; none where it is JSON."""
        form = (await self.of(principal, (approval,))).get(approval.id)
        return {} if form is None else {field.path: field for field in _within(form.fields)}

    async def entered(self, principal: Principal, approval: Approval, data: dict[str, str]) -> JsonObject | None:
        """The edited arguments; None if nothing was edited, or the form had none to edit. Raises
        CONFLICT `tool_changed` where the form is of an older schema, and INVALID."""
        if "schema" not in data and "arguments" not in data:
            return None
        if "arguments" in data:
            arguments = arguments_of(data["arguments"])
        else:
            schema = await self._schema_of(principal, approval)
            if schema is None or canonical_digest(schema) != data["schema"]:
                raise conflict("tool_changed", "The arguments of this tool have changed. Open the item again.")
            arguments = edited(schema, approval.arguments, data)
        return None if arguments == approval.arguments else arguments

    async def _schema_of(self, principal: Principal, approval: Approval) -> JsonObject | None:
        command = ExplainToolCommand(principal=principal, name=approval.tool, agent=approval.agent_id)
        try:
            return (await self._explain.execute(command)).tool.parameters
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None


def _within(fields: Iterable[Field]) -> Iterator[Field]:
    """The fields, and those of objects in them."""
    for field in fields:
        yield field
        yield from _within(field.fields)
