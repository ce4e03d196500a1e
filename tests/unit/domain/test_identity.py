"""Keys and roles: who may do what."""

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal, hash_token
from domain.identity.role import Role
from tests.builders import KEY, ORG

ORDER = [Role.VIEWER, Role.RUNNER, Role.OPERATOR, Role.ADMIN]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("own", ORDER)
@pytest.mark.parametrize("needed", ORDER)
def test_a_role_may_do_what_every_role_below_it_may_and_no_more(own: Role, needed: Role) -> None:
    principal = Principal(organization_id=ORG, key_id=KEY, role=own)
    if ORDER.index(own) >= ORDER.index(needed):
        principal.require(needed)
        return
    with pytest.raises(ServiceError) as refused:
        principal.require(needed)
    assert (refused.value.code, refused.value.kind) == ("role_insufficient", ErrorKind.FORBIDDEN)


@pytest.mark.requirement("C6")
def test_a_token_is_stored_as_its_sha256() -> None:
    assert hash_token("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
