"""Bodies of the routes of workflow runs."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.workflows.resume_workflow_run import AgentNodeAnswer
from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from interfaces.http.bodies import Body, Name
from interfaces.http.runs.schemas import CallDecisionBody, ResumeRunBody, ToolResultBody


class StartWorkflowRunBody(Body):
    """The input of a workflow run."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"input": {"topic": "bridges"}},)

    input: object = Field(default=None, description="Any JSON value that fits the entrypoint's schema.")

    def to_input(self) -> JsonValue:
        return cast(JsonValue, self.input)


class ReplayWorkflowRunBody(Body):
    """The node from which a new run executes; nodes before it keep the outputs of the earlier
    run."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"node_id": "review"},)

    node_id: Name = Field(description="Id of the node, a step of the newest version.")
    alone: bool = Field(default=False, description="Whether only this node and its tools are executed.")


class AnswerBody(Body):
    """A person's answer to a node."""

    node_id: Name = Field(description="Id of the node.")
    answer: object = Field(description="Any JSON value that fits the node's schema.")


Answers = Annotated[tuple[AnswerBody, ...], Field(strict=False, max_length=1_000)]


class ResumeWorkflowRunBody(Body):
    """Answers to nodes that wait for a person; or, for one node, the input of its agent's run,
    as at `/runs/{id}/resume`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"answers": [{"node_id": "review", "answer": True}]},
        {"node_id": "writer", "approvals": [{"tool_call_id": "call_…", "decision": "approve"}]},
    )

    answers: Answers = Field(default=(), description="Answers of people, by node.")
    node_id: Name | None = Field(default=None, description="The agent node whose run waits.")
    tool_results: list[ToolResultBody] = Field(
        default_factory=list, max_length=1_000, description="Results of client tools."
    )
    approvals: list[CallDecisionBody] = Field(
        default_factory=list, max_length=1_000, description="Requires the role operator."
    )

    def to_agent(self) -> AgentNodeAnswer | None:
        """The input for an agent's run. Raises INVALID `body_invalid` if `node_id` is missing."""
        given = ResumeRunBody(tool_results=self.tool_results, approvals=self.approvals)
        if self.node_id is not None:
            return AgentNodeAnswer(
                node_id=self.node_id, tool_results=given.to_results(), approvals=given.to_decisions()
            )
        if self.tool_results or self.approvals:
            fault = Violation(path="node_id", message="must name the agent node whose run waits")
            raise invalid("body_invalid", "The request body is not valid.", fault)
        return None

    def to_answers(self) -> dict[str, JsonValue]:
        """Answers by node id. Raises INVALID `body_invalid` for a node that is answered twice."""
        answers: dict[str, JsonValue] = {}
        for index, given in enumerate(self.answers):
            if given.node_id in answers:
                fault = Violation(path=f"answers.{index}.node_id", message="is answered twice")
                raise invalid("body_invalid", "The request body is not valid.", fault)
            answers[given.node_id] = cast(JsonValue, given.answer)
        return answers
