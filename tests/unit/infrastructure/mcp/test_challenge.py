"""WWW-Authenticate, as servers write it."""

import pytest

from infrastructure.mcp.oauth.challenge import Challenge, read_challenge

pytestmark = pytest.mark.requirement("B12")
URL = "https://mcp.example.org/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], Challenge()),
        (["Basic realm=x"], Challenge()),
        (["Bearer"], Challenge()),
        ([f'Bearer resource_metadata="{URL}"'], Challenge(resource_metadata=URL)),
        ([f"bearer  Resource_Metadata={URL}"], Challenge(resource_metadata=URL)),
        ([f'Basic realm="x, y", Bearer realm="a", resource_metadata="{URL}"'], Challenge(resource_metadata=URL)),
        (["Basic realm=x", 'Bearer scope="a b"'], Challenge(scope="a b")),
        (
            ['Bearer error="insufficient_scope", scope="files:write", error_description="say \\"please\\", scope=all"'],
            Challenge(error="insufficient_scope", scope="files:write"),
        ),
        (['Bearer scope="first", scope="second"'], Challenge(scope="first")),
        (['Bearer scope="unfinished'], Challenge()),
        (["Bearer " + "x" * 100_000], Challenge()),
        (["Bearer " + '="' * 4000], Challenge()),
    ],
)
def test_the_bearer_challenge_is_read(headers: list[str], expected: Challenge) -> None:
    assert read_challenge(headers) == expected
