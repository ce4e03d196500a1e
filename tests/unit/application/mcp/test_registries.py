"""ListMcpRegistries, SearchMcpRegistry and GetRegistryEntry: who may read registries, and what is
left out."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.registries import GetRegistryEntry, ListMcpRegistries, McpRegistries, SearchMcpRegistry
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.json_value import JsonObject
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("X6")
ADMIN, OPERATOR = a_principal(Role.ADMIN), a_principal(Role.OPERATOR)
NAME = "com.example/tickets"


def a_document(name: str = NAME, status: str = "active") -> JsonObject:
    meta: JsonObject = {"io.modelcontextprotocol.registry/official": {"status": status}}
    return {"server": {"name": name, "version": "1.0.0"}, "_meta": meta}


@pytest.fixture
def registries(mocker: MockerFixture) -> MockType:
    found = mocker.create_autospec(McpRegistries, instance=True)
    found.names = ("ours",)
    return found


async def test_only_admins_read_registries(registries: MockType) -> None:
    with refused("role_insufficient"):
        await ListMcpRegistries(registries=registries).execute(OPERATOR)
    with refused("role_insufficient"):
        await SearchMcpRegistry(registries=registries).execute(OPERATOR, "ours", "", limit=1)
    with refused("role_insufficient"):
        await GetRegistryEntry(registries=registries).execute(OPERATOR, "ours", NAME)
    registries.search.assert_not_awaited()
    registries.version.assert_not_awaited()
    assert await ListMcpRegistries(registries=registries).execute(ADMIN) == ("ours",)


async def test_a_search_leaves_out_what_is_deleted_or_cannot_be_read(registries: MockType) -> None:
    documents = [a_document(), a_document(status="deleted"), {"server": {}}, a_document("com.example/more")]
    registries.search.return_value = {"servers": documents, "metadata": {"nextCursor": "c"}}
    found = await SearchMcpRegistry(registries=registries).execute(ADMIN, "ours", "t", limit=9, cursor="b")
    assert ([entry.name for entry in found.entries], found.next_cursor) == ([NAME, "com.example/more"], "c")
    registries.search.assert_awaited_once_with("ours", "t", limit=9, cursor="b")


async def test_a_registry_that_is_not_configured_is_not_asked(registries: MockType) -> None:
    with refused("mcp_registry_not_found"):
        await SearchMcpRegistry(registries=registries).execute(ADMIN, "other", "", limit=1)
    with refused("mcp_registry_not_found"):
        await GetRegistryEntry(registries=registries).execute(ADMIN, "other", NAME)
    registries.search.assert_not_awaited()


async def test_an_answer_of_another_kind_of_service_is_no_registrys(registries: MockType) -> None:
    registries.search.return_value = {"data": []}
    with refused("mcp_registry_unavailable"):
        await SearchMcpRegistry(registries=registries).execute(ADMIN, "ours", "", limit=1)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        (NAME, None),
        (NAME, a_document(status="deleted")),
        (NAME, a_document("com.example/other")),
        ("../../admin", a_document("../../admin")),
    ],
)
async def test_an_entry_that_is_missing_deleted_or_anothers_is_not_found(
    registries: MockType, name: str, document: JsonObject | None
) -> None:
    registries.version.return_value = document
    with pytest.raises(ServiceError, match=f"There is no MCP registry entry '{name}'") as raised:
        await GetRegistryEntry(registries=registries).execute(ADMIN, "ours", name)
    assert raised.value.code == "mcp_registry_entry_not_found"


async def test_an_entry_is_read_in_the_version_that_is_asked_for(registries: MockType) -> None:
    registries.version.return_value = a_document()
    entry = await GetRegistryEntry(registries=registries).execute(ADMIN, "ours", NAME, "1.0.0")
    assert (entry.name, entry.version) == (NAME, "1.0.0")
    registries.version.assert_awaited_once_with("ours", NAME, "1.0.0")
