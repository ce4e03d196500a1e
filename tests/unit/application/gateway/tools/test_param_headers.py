"""Headers that repeat arguments, held against the official SDK's check of them."""

import string

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import encode_header_value, validate_mcp_param_headers

from application.gateway.tools.param_headers import header_mismatch, header_params
from domain.json_value import JsonObject, JsonValue
from interfaces.gateway.generations import header_value

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "x-mcp-header": "Name"},
        "size": {"type": "integer", "x-mcp-header": "Size"},
        "place": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
        "plain": {"type": "string"},
    },
}
PARAMS = header_params(SCHEMA)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0.5, 42.0, 1e22, 10**5000]),
    st.text(max_size=5),
    st.just([]),
)
arguments = st.fixed_dictionaries(
    {},
    optional={"name": values, "size": values, "place": st.one_of(st.just({}), st.fixed_dictionaries({"on": values}))},
)
said = st.one_of(
    st.integers(-50, 50).map(str),
    st.sampled_from(["42.0", "42.00", "42.5", "true", "false", "1e3", "=?base64?YQ==?=", "=?base64?YQ?=", "٤٢", "-0"]),
    st.text(string.printable, max_size=5),
    st.text(max_size=5).map(encode_header_value),
)


def fitting(given_arguments: JsonObject) -> dict[str, str]:
    """Headers as a client would send them, as far as they are texts that can be written."""
    place = given_arguments.get("place")
    found = {
        "mcp-param-name": given_arguments.get("name"),
        "mcp-param-size": given_arguments.get("size"),
        "mcp-param-on": place.get("on") if isinstance(place, dict) else None,
    }
    return {name: shown for name, value in found.items() if (shown := written(value)) is not None}


def written(value: JsonValue) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return encode_header_value(value)
        case int() | float() if abs(value) < 10**30:
            return str(value)
        case _:
            return None


@given(
    arguments,
    st.dictionaries(st.sampled_from(["mcp-param-name", "mcp-param-size", "mcp-param-on", "mcp-param-plain"]), said),
    st.booleans(),
)
def test_what_the_sdk_refuses_is_refused_and_nothing_else(
    given_arguments: JsonObject, headers: dict[str, str], fits: bool
) -> None:
    sent = {**headers, **fitting(given_arguments)} if fits else headers
    decoded = {name: header_value(value) for name, value in sent.items()}
    refused = validate_mcp_param_headers(SCHEMA, given_arguments, sent) is not None
    assert (header_mismatch(PARAMS, given_arguments, decoded) is not None) is refused


def test_parameters_are_found_where_properties_lead() -> None:
    assert [(param.path, param.header, param.is_integer) for param in PARAMS] == [
        (("name",), "mcp-param-name", False),
        (("size",), "mcp-param-size", True),
        (("place", "on"), "mcp-param-on", False),
    ]
    assert header_params({"type": "object"}) == ()
    assert header_params({"properties": []}) == ()
