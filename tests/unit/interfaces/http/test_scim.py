"""SCIM requests: what a directory sends again, and what it sends at the same time."""

import json
from typing import Any, get_type_hints

import pytest
from pytest_mock import MockerFixture

from application.provisioning.authenticate_directory import AuthenticateDirectory
from application.provisioning.create_group import CreateGroup
from application.provisioning.provision_user import ProvisionUser
from application.provisioning.queries import FindGroups, FindProvisionedUsers
from application.provisioning.update_group import UpdateGroup
from application.provisioning.update_provisioned_user import UpdateProvisionedUser
from domain.identity.user import UserStatus
from domain.ids import UserId
from domain.json_value import JsonObject, JsonValue
from interfaces.http.scim.server import ScimServer
from interfaces.http.scim.storage import DirectoryUseCases
from tests.unit.application.provisioning.directories import Directory

pytestmark = pytest.mark.requirement("P2")


class Requests:
    """Sends requests as the directory."""

    def __init__(self, directory: Directory, mocker: MockerFixture) -> None:
        common: dict[str, Any] = {"clock": directory.clock, "ids": directory.ids}
        people: dict[str, Any] = {**common, "provisioned": directory.provisioned, "directory_access": directory.access}
        real: dict[str, Any] = {
            "provision_user": ProvisionUser(**people),
            "update_provisioned_user": UpdateProvisionedUser(**people),
            "find_provisioned_users": FindProvisionedUsers(provisioned=directory.provisioned),
            "create_group": CreateGroup(**common, groups=directory.groups),
            "update_group": UpdateGroup(**common, groups=directory.groups),
            "find_groups": FindGroups(groups=directory.groups),
        }
        others: dict[str, Any] = {
            name: mocker.create_autospec(kind, instance=True)
            for name, kind in get_type_hints(DirectoryUseCases).items()
            if name not in real
        }
        authenticate = mocker.create_autospec(AuthenticateDirectory, instance=True)
        authenticate.execute.return_value = directory.provider
        self._server = ScimServer(
            authenticate_directory=authenticate,
            use_cases=DirectoryUseCases(**real, **others),
        )

    async def send(self, method: str, path: str, body: JsonValue) -> tuple[int, JsonObject]:
        answer = await self._server.answer(
            method=method,
            base_url="https://dragoman.example.com",
            path=path,
            query={},
            headers=[(b"authorization", b"Bearer token"), (b"content-type", b"application/scim+json")],
            body=json.dumps(body).encode(),
        )
        return answer.status, json.loads(answer.body or b"{}")

    async def patch(self, user_id: UserId, value: JsonObject) -> int:
        schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]
        body: JsonObject = {"schemas": [*schemas], "Operations": [{"op": "replace", "value": value}]}
        return (await self.send("PATCH", f"/Users/{user_id}", body))[0]


@pytest.fixture
def directory(mocker: MockerFixture) -> Directory:
    return Directory(mocker)


@pytest.fixture
def requests(directory: Directory, mocker: MockerFixture) -> Requests:
    return Requests(directory, mocker)


async def test_a_deactivation_that_is_sent_again_ends_what_is_left(directory: Directory, requests: Requests) -> None:
    user_id = (await directory.add()).user.id
    directory.work.execute.side_effect = ConnectionError
    with pytest.raises(ConnectionError):
        await requests.patch(user_id, {"active": False})
    assert directory.user(user_id).status is UserStatus.DEACTIVATED
    directory.work.execute.side_effect = None
    directory.work.execute.reset_mock()

    assert await requests.patch(user_id, {"active": False}) == 204
    person: JsonObject = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": "ann@example.com",
        "externalId": "ann",
        "active": False,
    }
    for _ in range(2):
        assert (await requests.send("PUT", f"/Users/{user_id}", person))[0] == 200
    assert directory.work.execute.await_count == 3


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"active": "maybe"}, "active must be true or false."),
        ({"userName": 7}, "userName must be a text."),
        ({"emails": [{"value": 7}]}, "emails.0.value must be a text."),
    ],
)
async def test_a_value_of_a_wrong_type_is_refused_in_plain_words(
    directory: Directory, requests: Requests, attributes: JsonObject, words: str
) -> None:
    person: JsonObject = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "a", **attributes}
    operation: JsonObject = {"op": "replace", "value": attributes}
    patch: JsonObject = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [operation]}
    user_id = (await directory.add()).user.id
    for method, path, body in (("POST", "/Users", person), ("PATCH", f"/Users/{user_id}", patch)):
        status, answer = await requests.send(method, path, body)
        assert (status, answer["scimType"], answer["detail"]) == (400, "invalidValue", words)


async def test_a_body_that_is_no_object_is_refused_in_plain_words(requests: Requests) -> None:
    status, answer = await requests.send("POST", "/Users", [])
    assert (status, answer["detail"]) == (400, "The body must be an object.")


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"userName": "a" * 256}, "userName has at most 255 characters."),
        ({"externalId": "a" * 256}, "externalId has at most 255 characters."),
        ({"displayName": "a" * 256}, "displayName has at most 255 characters."),
        ({"emails": [{"value": "a" * 321}]}, "emails has at most 320 characters."),
        ({"emails": [{"value": "ann@example.com"}] * 21}, "A person has at most 20 e-mail addresses."),
    ],
)
async def test_what_is_longer_than_a_name_is_refused(requests: Requests, attributes: JsonObject, words: str) -> None:
    person: JsonObject = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": "a" * 255,
        **attributes,
    }
    status, answer = await requests.send("POST", "/Users", person)
    assert (status, answer["scimType"], answer["detail"]) == (400, "invalidValue", words)
    group: JsonObject = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "displayName": "a" * 256}
    assert (await requests.send("POST", "/Groups", group))[0] == 400
    group["displayName"] = person["userName"] = "a" * 255
    assert (await requests.send("POST", "/Groups", group))[0] == 201
