"""Questions of MCP servers as forms (MCP 2025-11-25, elicitation: the schemas that servers may
send)."""

import pytest
from jinja2 import Environment, PackageLoader

from domain.errors import ServiceError
from domain.json_value import JsonObject, JsonValue
from interfaces.console.questions import FieldKind, content_of, edited, fields_of, filled

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "default": "Ada"},
        "mail": {"type": "string", "format": "email"},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean", "default": True},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
        "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["salt", "oil"]}, "default": ["oil"]},
        "more": {"type": "object"},
    },
    "required": ["name"],
}


@pytest.mark.requirement("B4")
def test_each_kind_of_property_is_a_field_of_its_kind() -> None:
    fields = fields_of(SCHEMA)
    assert [(field.key, field.kind) for field in fields] == [
        ("name", FieldKind.TEXT),
        ("mail", FieldKind.TEXT),
        ("count", FieldKind.NUMBER),
        ("urgent", FieldKind.YES_NO),
        ("size", FieldKind.ONE_OF),
        ("colour", FieldKind.ONE_OF),
        ("extras", FieldKind.SOME_OF),
        ("more", FieldKind.JSON),
    ]
    assert [(field.title, field.value, field.required) for field in fields[:2]] == [
        ("Your name", "Ada", True),
        ("mail", "", False),
    ]
    assert fields[1].input_type == "email"
    assert fields[3].is_set
    assert [(option.value, option.title) for option in fields[4].options] == [("s", "Small"), ("m", "Medium")]
    assert [(option.value, option.title) for option in fields[5].options] == [("#f00", "Red"), ("#00f", "Blue")]
    assert [option.chosen for option in fields[6].options] == [False, True]


@pytest.mark.requirement("B4")
def test_what_was_filled_in_becomes_the_answer_with_the_types_of_the_schema() -> None:
    form = {"f0": "Grace", "f2": "3", "f3": "yes", "f4": "m", "f5": "", "f6.0": "yes", "f7": '{"a": [1]}'}
    assert content_of(SCHEMA, form) == {
        "name": "Grace",
        "count": 3,
        "urgent": True,
        "size": "m",
        "extras": ["salt"],
        "more": {"a": [1]},
    }
    assert content_of(SCHEMA, {}) == {"urgent": False, "extras": []}


@pytest.mark.parametrize(("name", "text"), [("f2", "three"), ("f2", "NaN"), ("f7", "{")])
def test_what_cannot_be_read_is_refused_with_the_name_of_the_field(name: str, text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        content_of(SCHEMA, {name: text})
    assert refused.value.violations[0].path in ("count", "more")


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": True}, "required": "a"}])
def test_a_schema_that_is_none_breaks_no_page(schema: JsonObject) -> None:
    assert all(field.kind is FieldKind.JSON for field in fields_of(schema))


@pytest.mark.requirement("U6")
def test_a_value_that_may_be_null_has_the_field_of_its_other_type_and_is_left_out_when_empty() -> None:
    schema: JsonObject = {
        "properties": {
            "text": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Text"},
            "count": {"type": ["integer", "null"]},
            "size": {"oneOf": [{"type": "string", "enum": ["s", "m"]}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }
    }
    assert [field.kind for field in fields_of(schema)] == [
        FieldKind.TEXT,
        FieldKind.NUMBER,
        FieldKind.ONE_OF,
        FieldKind.JSON,
    ]
    assert content_of(schema, {"f0": "", "f1": "3"}) == {"count": 3}


ARGUMENTS: JsonObject = {"to": "ada@example.org", "body": "Dear Ada,\r\nhello", "count": 2, "own": {"a": 1}}
OF_TOOL: JsonObject = {
    "properties": {
        "to": {"type": "string", "format": "email"},
        "body": {"type": "string"},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "size": {"type": "string", "enum": ["s", "m"]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    },
    "required": ["to"],
}
AS_SENT = {"f0": "ada@example.org", "f1": "Dear Ada,\r\nhello", "f2": "2", "f6": '{"a": 1}'}


@pytest.mark.requirement("U6")
def test_arguments_fill_the_form_of_a_tool_and_what_its_schema_lacks_is_json() -> None:
    fields = fields_of(filled(OF_TOOL, ARGUMENTS))
    assert [(field.key, field.kind, field.value) for field in fields[:3]] == [
        ("to", FieldKind.TEXT, "ada@example.org"),
        ("body", FieldKind.TEXT, "Dear Ada,\r\nhello"),
        ("count", FieldKind.NUMBER, "2"),
    ]
    assert (fields[1].is_long, fields[0].is_long) == (True, False)
    assert (fields[-1].key, fields[-1].kind, fields[-1].value) == ("own", FieldKind.JSON, '{"a": 1}')


@pytest.mark.requirement("U6")
def test_a_form_that_nobody_touched_changes_no_argument() -> None:
    assert edited(OF_TOOL, ARGUMENTS, AS_SENT) == ARGUMENTS


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("entered", "expected"),
    [
        ({"f1": "Dear Ada,\r\nbye"}, {"body": "Dear Ada,\nbye"}),
        ({"f2": ""}, {"count": None}),
        ({"f2": "3", "f3": "yes"}, {"count": 3, "urgent": True}),
        ({"f4": "m", "f5.1": "yes"}, {"size": "m", "tags": ["b"]}),
        ({"f6": "[1]"}, {"own": [1]}),
    ],
)
def test_only_what_was_entered_is_changed(entered: dict[str, str], expected: JsonObject) -> None:
    changed = {**ARGUMENTS, **expected}
    assert edited(OF_TOOL, ARGUMENTS, AS_SENT | entered) == {k: v for k, v in changed.items() if v is not None}


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("schema", "value", "input_type"),
    [
        ({"type": "string", "format": "date"}, "2026-01-31", "date"),
        ({"type": "string", "format": "date"}, "2026-02-30", "text"),
        ({"type": "string", "format": "date"}, "tomorrow", "text"),
        ({"type": "string", "format": "email"}, "ada@example.org", "email"),
        ({"type": "string", "format": "email"}, " ada@example.org ", "text"),
        ({"type": "string", "format": "uri"}, "https://example.org/a?b=c", "url"),
        ({"type": "string", "format": "uri"}, "example.org", "text"),
        ({"type": "number"}, 2.5, "number"),
        ({"type": "number"}, "many", "text"),
        ({"type": "string", "format": "date"}, None, "date"),
    ],
)
def test_an_input_has_its_type_only_for_a_value_that_the_browser_sends_as_it_is(
    schema: JsonObject, value: JsonValue, input_type: str
) -> None:
    (field,) = fields_of(filled({"type": "object", "properties": {"it": schema}}, {"it": value}))
    assert field.input_type == input_type


@pytest.mark.requirement("U6")
def test_a_text_that_begins_with_an_empty_line_keeps_it() -> None:
    schema: JsonObject = {"type": "object", "properties": {"body": {"type": "string"}}}
    values: JsonObject = {"body": "\n\rDear Ada"}
    (field,) = fields_of(filled(schema, values))
    templates = Environment(loader=PackageLoader("interfaces.console"), autoescape=True, trim_blocks=True)
    templates.filters["revealed"] = str
    shown = templates.get_template("parts/question_field.html").render(field=field, id="item")
    assert ">\n\n\rDear Ada</textarea>" in shown  # parsers of HTML drop the first line break of a text area
    assert edited(schema, values, {"f0": "\r\n\r\nDear Ada"}) == values


NESTED: JsonObject = {
    "type": "object",
    "properties": {
        "who": {
            "type": "object",
            "title": "Who",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "own": {"type": "object"}},
            "required": ["name"],
        },
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "number"}},
        "rows": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["who"],
}


@pytest.mark.requirement("U6")
def test_an_object_in_an_object_has_its_fields_and_a_list_of_plain_values_lines() -> None:
    who, tags, sizes, rows = fields_of(NESTED)
    assert [each.kind for each in (who, tags, sizes, rows)] == [
        FieldKind.GROUP,
        FieldKind.LINES,
        FieldKind.LINES,
        FieldKind.JSON,
    ]
    assert [(each.name, each.path, each.kind, each.required) for each in who.fields] == [
        ("f0-0", "who.name", FieldKind.TEXT, True),
        ("f0-1", "who.age", FieldKind.NUMBER, False),
        ("f0-2", "who.own", FieldKind.JSON, False),
    ]
    form = {"f0-0": "Ada", "f0-1": "36", "f1": "a\r\n\r\n b ", "f2": "1\n2.5", "f3": '[{"a": 1}]'}
    assert content_of(NESTED, form) == {
        "who": {"name": "Ada", "age": 36},
        "tags": ["a", "b"],
        "sizes": [1, 2.5],
        "rows": [{"a": 1}],
    }
    assert content_of(NESTED, {}) == {"who": {}}


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(("name", "path"), [("f0-1", "who.age"), ("f2", "sizes")])
def test_a_wrong_number_within_is_refused_with_the_way_to_its_field(name: str, path: str) -> None:
    with pytest.raises(ServiceError) as refused:
        content_of(NESTED, {name: "many"})
    assert refused.value.violations[0].path == path


@pytest.mark.requirement("U6")
def test_an_optional_object_is_left_out_while_nothing_in_it_is_given() -> None:
    schema: JsonObject = {
        "properties": {"by": {"type": "object", "properties": {"name": {"type": "string"}, "all": {"type": "boolean"}}}}
    }
    (by,) = fields_of(schema)
    assert [each.required for each in by.fields] == [False, False]
    assert content_of(schema, {}) == {}
    assert content_of(schema, {"f0-1": "yes"}) == {"by": {"all": True}}


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(("number", "read"), [("0", 0), ("0.0", 0.0)])
def test_an_optional_object_with_a_zero_is_given(number: str, read: float) -> None:
    within: JsonObject = {"type": "object", "properties": {"to": {"type": "number"}, "all": {"type": "boolean"}}}
    schema: JsonObject = {"properties": {"by": {"type": "object", "properties": {"within": within}}}}
    assert content_of(schema, {"f0-0-0": number}) == {"by": {"within": {"to": read, "all": False}}}
    assert content_of(schema, {}) == {}


@pytest.mark.requirement("U6")
def test_within_an_object_only_what_was_entered_is_changed() -> None:
    who: JsonObject = {"name": "Ada", "note": "a\r\nb", "own": {"x": 1}}
    values: JsonObject = {"who": who, "tags": ["a"], "rows": [{}]}
    sent = {"f0-0": "Ada", "f0-2": '{"x": 1}', "f0-3": '"a\\r\\nb"', "f1": "a", "f3": "[{}]"}
    shown = fields_of(filled(NESTED, values))
    assert [each.value for each in shown[0].fields] == ["Ada", "", '{"x": 1}', '"a\\r\\nb"']
    assert edited(NESTED, values, {**sent, "f0-3": '"a"'})["who"] == {"name": "Ada", "note": "a", "own": {"x": 1}}
    assert edited(NESTED, values, {**sent, "f0-1": "37", "f1": "a\nb"}) == {
        **values,
        "who": {**who, "age": 37},
        "tags": ["a", "b"],
    }


@pytest.mark.requirement("U6")
@pytest.mark.parametrize("value", [["a\nb"], [" a"], [""], [1], "a", [True], ["a\u202eb"]])
def test_a_list_that_lines_would_change_is_json(value: JsonValue) -> None:
    fields = fields_of(filled(NESTED, {"tags": value}))
    assert fields[1].kind is FieldKind.JSON


@pytest.mark.requirement("U6")
def test_objects_are_json_where_they_lie_too_deep_or_have_no_object_as_value() -> None:
    schema: JsonObject = {"type": "object", "properties": {"end": {"type": "string"}}}
    for _ in range(6):
        schema = {"type": "object", "properties": {"in": schema}}
    kinds = []
    fields = fields_of(schema)
    while fields:
        kinds.append(fields[0].kind)
        fields = fields[0].fields
    assert kinds == [FieldKind.GROUP] * 3 + [FieldKind.JSON]
    assert fields_of(filled(NESTED, {"who": "Ada"}))[0].kind is FieldKind.JSON


@pytest.mark.requirement("U6", "S5")
def test_a_text_with_hidden_characters_is_json_that_shows_them_and_stays_what_it_is() -> None:
    values: JsonObject = {"to": "ada\u202e@example.org", "body": "ü", "own": "\u202e"}
    to, body, *_, own = fields_of(filled(OF_TOOL, values))
    assert (to.kind, to.value) == (FieldKind.JSON, '"ada\\u202e@example.org"')
    assert (body.kind, body.value, own.value) == (FieldKind.TEXT, "ü", '"\\u202e"')
    assert edited(OF_TOOL, values, {"f0": to.value, "f1": "ü", "f6": own.value}) == values
