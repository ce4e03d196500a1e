"""server.json documents of registries: which servers they become, with which inputs, and what
cannot be used here."""

from typing import Any

import pytest

from application.mcp.registry_documents import MAX_PARTS, read_entry_document
from domain.errors import ServiceError
from domain.mcp.registry_entry import RegistryEntry
from domain.mcp.server import Isolation, McpServerKind
from domain.secrets.secret import SecretRef, SecretValue
from interfaces.http.mcp_registries.views import entry_view

pytestmark = pytest.mark.requirement("X6")
Json = dict[str, Any]
META = {"io.modelcontextprotocol.registry/official": {"status": "active", "isLatest": True}}


def a_document(**server: Any) -> Json:
    entry = {"name": "com.example/tickets", "description": "Tickets.", "version": "1.2.0", **server}
    return {"server": entry, "_meta": META}


def read(**server: Any) -> RegistryEntry:
    entry = read_entry_document(a_document(**server))
    assert entry is not None
    return entry


def a_package(type_: str = "npm", identifier: str = "@example/tickets", **more: Any) -> Json:
    package = {"registryType": type_, "identifier": identifier, "version": "1.2.0", "transport": {"type": "stdio"}}
    return {**package, **more}


def faults_of(error: pytest.ExceptionInfo[ServiceError]) -> dict[str, str]:
    return {fault.path: fault.message for fault in error.value.violations}


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        (a_package(), (McpServerKind.NPM, "@example/tickets", "1.2.0")),
        (a_package("pypi", "mcp-tickets"), (McpServerKind.PYTHON, "mcp-tickets", "1.2.0")),
        (a_package("oci", "ghcr.io/example/tickets:1.2.0"), (McpServerKind.OCI, "ghcr.io/example/tickets:1.2.0", None)),
        (a_package("oci", "localhost:5000/tickets"), (McpServerKind.OCI, "localhost:5000/tickets", "1.2.0")),
    ],
)
def test_packages_become_servers_of_the_kinds_that_install_them(package: Json, expected: tuple[object, ...]) -> None:
    entry = read(packages=[package])
    config = entry.option(0).config("tickets", {})
    assert (config.kind, config.package, config.version) == expected
    assert (config.isolation, config.trusted) == (Isolation.RUN, False)


def test_arguments_and_variables_are_fixed_or_inputs_with_defaults_and_choices() -> None:
    package = a_package(
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "positional", "valueHint": "folder", "isRequired": True, "description": "Where\x07 tickets are."},
            {"type": "named", "name": "--mode", "default": "fast", "choices": ["fast", "safe"]},
            {"type": "named", "name": "--level", "format": "string"},
            {"type": "named", "name": "--verbose", "isRequired": True},
            {"type": "named", "name": "--quiet"},
        ],
        environmentVariables=[
            {"name": "TICKETS_TOKEN", "isRequired": True, "isSecret": True},
            {"name": "REGION", "value": "{where}-1", "variables": {"where": {"default": "eu"}}},
            {"name": "EXTRA"},
        ],
    )
    option = read(packages=[package]).option(0)
    shown = {one.name: (one.is_required, one.is_secret, one.default, one.choices) for one in option.inputs}
    assert shown == {
        "args.folder": (True, False, None, ()),
        "args.mode": (False, False, "fast", ("fast", "safe")),
        "args.level": (False, False, None, ()),
        "env.TICKETS_TOKEN": (True, True, None, ()),
        "env.REGION.where": (False, False, "eu", ()),
        "env.EXTRA": (False, False, None, ()),
    }
    assert option.inputs[0].description == "Where tickets are."
    config = option.config("tickets", {"args.folder": "/srv", "env.TICKETS_TOKEN": SecretRef("TOKEN")})
    assert config.args == ("serve", "/srv", "--mode=fast", "--verbose")
    assert config.env == {"TICKETS_TOKEN": SecretRef("TOKEN"), "REGION": "eu-1"}


def test_inputs_that_are_missing_unknown_or_not_among_the_choices_are_named() -> None:
    arguments = [{"type": "named", "name": "--mode", "isRequired": True, "choices": ["fast"]}]
    option = read(packages=[a_package(packageArguments=arguments)]).option(0)
    with pytest.raises(ServiceError) as missing:
        option.config("tickets", {"env.X": "x"})
    assert missing.value.code == "registry_inputs_invalid"
    assert faults_of(missing) == {"inputs.args.mode": "is required", "inputs.env.X": "is no input of the entry"}
    for value in ("slow", SecretRef("MODE")):
        with pytest.raises(ServiceError) as wrong:
            option.config("tickets", {"args.mode": value})
        assert "inputs.args.mode" in faults_of(wrong)


def test_remote_servers_take_headers_and_secrets_in_their_address_by_name() -> None:
    remote = {
        "type": "streamable-http",
        "url": "https://{tenant}.example.com/{key}/mcp",
        "variables": {"tenant": {"isRequired": True}, "key": {"isRequired": True, "isSecret": True}},
        "headers": [
            {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": True}}},
            {"name": "X-Team", "isRequired": True, "isSecret": True},
        ],
    }
    entry = read(remotes=[remote, {"type": "sse", "url": "https://old.example.com/sse"}])
    assert [option.kind for option in entry.options] == [McpServerKind.HTTP, McpServerKind.SSE]
    given: dict[str, SecretValue] = {
        "url.url.tenant": "acme",
        "url.url.key": SecretRef("KEY"),
        "headers.X-Team": SecretRef("TEAM"),
    }
    config = entry.option(0).config("tickets", {**given, "headers.Authorization.token": "t-1"})
    assert (config.kind, config.url) == (McpServerKind.HTTP, "https://acme.example.com/${secret:KEY}/mcp")
    assert config.headers == {"Authorization": "Bearer t-1", "X-Team": SecretRef("TEAM")}
    assert config.isolation is Isolation.SHARED
    assert entry.option(0).config("tickets", given).headers == {"X-Team": SecretRef("TEAM")}
    values = {**given, "url.url.key": "k-1", "headers.Authorization.token": SecretRef("T")}
    with pytest.raises(ServiceError) as wrong:
        entry.option(0).config("tickets", values)
    assert set(faults_of(wrong)) == {"inputs.url.url.key", "inputs.headers.Authorization.token"}


@pytest.mark.parametrize(
    "package",
    [
        a_package("mcpb", "https://example.com/tickets.mcpb", fileSha256="0" * 64),
        a_package("nuget", "Example.Tickets"),
        a_package(transport={"type": "streamable-http", "url": "http://127.0.0.1:8080/mcp"}),
        a_package(runtimeHint="npx", runtimeArguments=[{"type": "named", "name": "--node-options", "value": "x"}]),
        a_package(packageArguments=[{"type": "named", "name": "--key", "isRequired": True, "isSecret": True}]),
        a_package(identifier="git+https://example.com/tickets.git"),
        a_package(version="not a version"),
        a_package("pypi", "git+https://example.com/tickets.git"),
        a_package("oci", "Not/An/Image"),
        a_package(identifier=""),
        a_package(identifier="/srv/tickets.tgz", version=""),
    ],
)
def test_what_cannot_be_started_here_is_no_option_and_says_why(package: Json) -> None:
    entry = read(packages=[package])
    assert entry.options == ()
    with pytest.raises(ServiceError) as refused:
        entry.option(0)
    assert (refused.value.code, refused.value.detail) == ("registry_option_invalid", entry.unavailable[0])


REFERENCE = "${secret:OPENAI_KEY}"
REMOTE = {"type": "streamable-http", "url": "https://example.com/mcp"}


@pytest.mark.parametrize(
    "remote",
    [
        {"url": f"https://example.com/mcp?k={REFERENCE}"},
        {"url": "https://example.com/${secret:{name}}", "variables": {"name": {"default": "OPENAI_KEY"}}},
        {"url": "https://example.com/${secret:X}", "variables": {"secret:X": {"default": "{secret:OPENAI_KEY}"}}},
        {"url": "https://example.com/{key}", "variables": {"key": {"default": REFERENCE}}},
        {"url": "https://example.com/{key}", "variables": {"key": {"choices": ["none", REFERENCE]}}},
        {"headers": [{"name": "X-Key", "value": f"Bearer {REFERENCE}"}]},
        {"headers": [{"name": "X-Key", "default": REFERENCE}]},
    ],
)
def test_an_address_or_header_that_refers_to_secrets_by_itself_is_no_option(remote: Json) -> None:
    entry = read(remotes=[{**REMOTE, **remote}])
    assert entry.options == ()
    assert entry.unavailable == ("http: the entry refers to secrets of the organization by itself.",)


@pytest.mark.parametrize("part", ["packageArguments", "environmentVariables"])
@pytest.mark.parametrize("word", ["value", "default"])
def test_a_package_that_refers_to_secrets_by_itself_is_no_option(part: str, word: str) -> None:
    more: Json = {part: [{"type": "positional", "name": "KEY", word: REFERENCE}]}
    assert "refers to secrets" in read(packages=[a_package(**more)]).unavailable[0]


def test_a_reference_that_is_made_of_parts_is_refused_unless_its_secret_was_given() -> None:
    variables = {"a": {"default": "$"}, "b": {"default": "{secret"}, "c": {"default": ":OPENAI_KEY}"}, "d": {}}
    remote = {**REMOTE, "url": "https://example.com/{a}{b}{c}?d={d}", "variables": variables}
    option = read(remotes=[remote]).option(0)
    for given in ("x", SecretRef("OTHER")):
        with pytest.raises(ServiceError) as wrong:
            option.config("tickets", {"url.url.d": given})
        assert faults_of(wrong) == {"url.url": "refers to a secret that was not given"}
    remote = {**REMOTE, "url": "https://example.com/{d}", "variables": {"d": {}}}
    with pytest.raises(ServiceError):
        read(remotes=[remote]).option(0).config("tickets", {"url.url.d": REFERENCE})


def test_what_the_publisher_chose_is_shown_beside_the_inputs() -> None:
    package = a_package(
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--mode", "format": "string"},
        ],
        environmentVariables=[{"name": "NODE_OPTIONS", "value": "--require x"}, {"name": "TOKEN"}],
    )
    headers = [{"name": "X-Team", "value": "team-{team}", "variables": {"team": {}}}]
    remote = {**REMOTE, "headers": headers}
    of_package, of_remote = (
        option["settings"] for option in entry_view(read(packages=[package], remotes=[remote]))["options"]
    )
    assert of_package == [
        {"name": "args.0", "value": "serve"},
        {"name": "args.mode", "value": "--mode {args.mode}"},
        {"name": "env.NODE_OPTIONS", "value": "--require x"},
    ]
    assert of_remote == [
        {"name": "url.url", "value": "https://example.com/mcp"},
        {"name": "headers.X-Team", "value": "team-{headers.X-Team.team}"},
    ]


def test_arguments_of_a_container_engine_set_variables_and_nothing_else() -> None:
    runtime = [
        {"type": "named", "name": "-i"},
        {"type": "named", "name": "--rm"},
        {"type": "named", "name": "-e", "value": "TOKEN={token}", "variables": {"token": {"isSecret": True}}},
    ]
    option = read(packages=[a_package("oci", "tickets:1", runtimeArguments=runtime)]).option(0)
    assert option.config("tickets", {"env.TOKEN.token": "t-1"}).env == {"TOKEN": "t-1"}
    mount = [{"type": "named", "name": "--mount", "value": "type=bind,src=/,dst=/host"}]
    assert read(packages=[a_package("oci", "tickets:1", runtimeArguments=mount)]).options == ()


def test_a_package_registry_and_a_hash_of_the_entrys_own_are_told_because_they_are_not_used() -> None:
    package = a_package(registryBaseUrl="https://packages.example.com", fileSha256="0" * 64)
    remarks = read(packages=[package]).option(0).remarks
    assert "https://packages.example.com" in remarks[0]
    assert "hash" in remarks[1]


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"server": 7},
        a_document(name="no-slash"),
        a_document(version=""),
        a_document(name="a/b/../c"),
        a_document(version="1.2 beta"),
        a_document(version="1" * 500, name="a" * 140 + "/b"),
    ],
)
def test_what_is_no_entry_is_left_out(document: object) -> None:
    assert read_entry_document(document) is None


def test_texts_and_lists_of_strangers_are_bounded() -> None:
    entry = read(
        title="\x1b[31mRed\n" + "x" * 10_000,
        packages=[a_package(environmentVariables=[{"name": f"A{number}"} for number in range(1_000)])],
        remotes=["rubbish", {"type": "pipe", "url": 7}],
    )
    assert entry.title.startswith("[31mRed x")
    assert len(entry.title) == 500
    assert len(entry.option(0).inputs) == MAX_PARTS
    assert len(entry.unavailable) == 1
