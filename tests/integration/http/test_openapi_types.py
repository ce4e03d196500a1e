"""The OpenAPI document as types: what generators of clients need of every property, state, time and
operation."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from domain.runs.events import RunEventType
from domain.workflows.run import WorkflowEventType
from tests.integration.http.documented import Node, document, operations

SCHEMAS: dict[str, Any] = document()["components"]["schemas"]
TIME = re.compile(r"(_at|_until|^at|^since|^as_of)$")
STATE = re.compile(
    r"(^|_)(status|state|kind|mode|role|type|outcome|health|decision|verdict|standing|layer|action|event|policy)$"
)
NO_STATES = {
    "ImagePart.media_type",
    "FilePart.media_type",
    "FileView.media_type",
    "ImageView.media_type",
    "CloudBody.role",  # an ARN
    "CloudView.role",
    "Problem.status",  # of HTTP, as the next two are
    "Problem.type",  # a URN
    "ProviderErrorView.status",
    "WebhookDeliveryView.last_status",
    "NodeBody.kind",  # the compiler reports unknown kinds and modes, with all other faults
    "NodeBody.mode",
    "NodeView.kind",  # as written, maybe by an older version
    "NodeView.mode",
}


def properties(name: str, schema: Node) -> Iterator[tuple[str, Node]]:
    """Every property in a schema, also of shapes inside it."""
    for field, shape in schema.get("properties", {}).items():
        yield f"{name}.{field}", shape
        yield from properties(f"{name}.{field}", shape)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from properties(name, schema[inner])
    for union in ("oneOf", "anyOf", "allOf"):
        for member in schema.get(union, ()):
            yield from properties(name, member)


def leaves(schema: Node) -> Iterator[Node]:
    """The schemas that a value may have, without null, behind references and unions."""
    if "$ref" in schema:
        yield from leaves(SCHEMAS[schema["$ref"].rpartition("/")[2]])
        return
    members = [member for union in ("oneOf", "anyOf", "allOf") for member in schema.get(union, ())]
    for member in members:
        yield from leaves(member)
    if not members and schema.get("type") == "array":
        yield from leaves(schema["items"])
    elif not members and schema.get("type") != "null":
        yield schema


PROPERTIES = dict(found for name, schema in SCHEMAS.items() for found in properties(name, schema))


def of_inline_shapes() -> Iterator[tuple[str, Node]]:
    for label, operation in operations():
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (content for body in bodies for content in body.get("content", {}).values()):
            yield from properties(label, content["schema"])


def test_every_property_is_described() -> None:
    assert len(PROPERTIES) > 1_000
    found = {**PROPERTIES, **dict(of_inline_shapes())}
    assert [name for name, shape in found.items() if not shape.get("description")] == []


def test_every_shape_is_described() -> None:
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description") and "oneOf" not in schema] == []


def test_every_time_has_its_format() -> None:
    times = {name: shape for name, shape in PROPERTIES.items() if TIME.search(name.rpartition(".")[2])}
    assert len(times) > 60
    assert [
        name for name, shape in times.items() if any(leaf.get("format") != "date-time" for leaf in leaves(shape))
    ] == []


def test_every_state_is_an_enumeration() -> None:
    states = {name: shape for name, shape in PROPERTIES.items() if STATE.search(name.rpartition(".")[2])}
    assert len(states) > 60
    untyped = {
        name
        for name, shape in states.items()
        if not all({"enum", "const", "properties"} & leaf.keys() for leaf in leaves(shape))
        and not name.endswith(".custom_role")  # the name of a role
    }
    assert untyped == NO_STATES


def test_every_operation_has_one_described_tag() -> None:
    tags = {tag["name"]: tag["description"] for tag in document()["tags"]}
    assert all(tags.values())
    assert [label for label, operation in operations() if len(operation["tags"]) != 1] == []
    assert {operation["tags"][0] for _, operation in operations()} == {*tags}
    assert [tag for tag in tags if tag[0].islower()] == []


def test_every_parameter_is_described() -> None:
    assert [
        f"{label} {parameter['name']}"
        for label, operation in operations()
        for parameter in operation.get("parameters", ())
        if not parameter.get("description")
    ] == []


@pytest.mark.parametrize(
    ("union", "kinds"),
    [
        ("RunEventView", {*RunEventType}),
        ("RunStreamItem", {*RunEventType, "end"}),
        ("WorkflowStreamItem", {*WorkflowEventType, "end"}),
        ("ContentView", {"text", "image", "file", "tool_use", "tool_result"}),
    ],
)
def test_events_and_contents_are_unions_told_apart_by_their_type(union: str, kinds: set[str]) -> None:
    schema = SCHEMAS[union]
    assert schema["discriminator"]["propertyName"] == "type"
    mapping = schema["discriminator"]["mapping"]
    assert mapping.keys() == kinds
    assert [member["$ref"] for member in schema["oneOf"]] == [*mapping.values()]
    for kind, reference in mapping.items():
        member = SCHEMAS[reference.rpartition("/")[2]]
        assert member["properties"]["type"]["const"] == kind
        assert "type" in member["required"]


@pytest.mark.parametrize(
    ("operation", "union"),
    [
        ("POST /v1/runs/stream", "RunStreamItem"),
        ("POST /v1/threads/{thread_id}/runs/stream", "RunStreamItem"),
        ("GET /v1/runs/{run_id}/stream", "RunStreamItem"),
        ("GET /v1/workflow-runs/{workflow_run}/stream", "WorkflowStreamItem"),
    ],
)
def test_a_stream_is_of_the_union_of_its_events(operation: str, union: str) -> None:
    content = dict(operations())[operation]["responses"]["200"]["content"]
    assert content["text/event-stream"]["schema"] == {"$ref": f"#/components/schemas/{union}"}
