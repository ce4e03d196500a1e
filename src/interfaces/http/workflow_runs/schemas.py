"""Bodies of the routes of workflow runs."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from interfaces.http.bodies import Body, Name


class StartWorkflowRunBody(Body):
    """What a workflow is given."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"input": {"topic": "bridges"}},)

    input: object = Field(default=None, description="Any JSON value; it fits the entrypoint's schema.")

    def to_input(self) -> JsonValue:
        """The value."""
        return cast(JsonValue, self.input)


class AnswerBody(Body):
    """What a person says to a node."""

    node_id: Name
    answer: object = Field(description="Any JSON value; it fits the schema that the node asked for.")


Answers = Annotated[tuple[AnswerBody, ...], Field(strict=False, max_length=1_000)]


class ResumeWorkflowRunBody(Body):
    """Answers to nodes that wait."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"answers": [{"node_id": "review", "answer": True}]},)

    answers: Answers

    def to_answers(self) -> dict[str, JsonValue]:
        """By node id. Raises INVALID `body_invalid` for a node that is answered twice."""
        answers: dict[str, JsonValue] = {}
        for index, given in enumerate(self.answers):
            if given.node_id in answers:
                fault = Violation(path=f"answers.{index}.node_id", message="is answered twice")
                raise invalid("body_invalid", "The request body is not valid.", fault)
            answers[given.node_id] = cast(JsonValue, given.answer)
        return answers
