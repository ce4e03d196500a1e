"""References of container images."""

import pytest

from domain.mcp.images import OciImage, oci_image
from domain.mcp.packages import WrongPackageError

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("package", "version", "image"),
    [
        ("mcp/time", None, OciImage(repository="mcp/time", tag="latest")),
        ("time", "1.2", OciImage(repository="time", tag="1.2")),
        ("ghcr.io/own.er/a_b/c--d:v1", None, OciImage(repository="ghcr.io/own.er/a_b/c--d", tag="v1")),
        ("localhost:5000/time", None, OciImage(repository="localhost:5000/time", tag="latest")),
        (f"mcp/time@{DIGEST}", None, OciImage(repository="mcp/time", tag="latest", digest=DIGEST)),
        (f"mcp/time:1@{DIGEST}", None, OciImage(repository="mcp/time", tag="1", digest=DIGEST)),
        ("mcp/time", DIGEST, OciImage(repository="mcp/time", tag="latest", digest=DIGEST)),
    ],
)
def test_an_image_is_a_repository_with_a_tag_or_a_digest(package: str, version: str | None, image: OciImage) -> None:
    assert oci_image(package, version) == image


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("package", "registry"),
    [
        ("time", None),
        ("mcp/time", None),
        ("ghcr.io/mcp/time", "ghcr.io"),
        ("localhost/time", "localhost"),
        ("host:5000/time", "host:5000"),
        ("Metadata/time", "Metadata"),
    ],
)
def test_the_first_part_is_a_registry_as_engines_decide_it(package: str, registry: str | None) -> None:
    assert oci_image(package, None).registry == registry


@pytest.mark.requirement("S1")
def test_a_digest_is_pulled_whatever_the_tag_says() -> None:
    assert oci_image("mcp/time", "1").reference == "mcp/time:1"
    assert oci_image(f"mcp/time:1@{DIGEST}", None).reference == f"mcp/time@{DIGEST}"


@pytest.mark.requirement("S1")
@pytest.mark.parametrize(
    ("package", "version", "path"),
    [
        ("", None, "package"),
        ("Mcp/Time", None, "package"),
        ("mcp/time ", None, "package"),
        ("mcp//time", None, "package"),
        ("mcp/../time", None, "package"),
        ("/srv/image.tar", None, "package"),
        ("--privileged", None, "package"),
        ("mcp/time?x=1", None, "package"),
        ("mcp/time@sha256:abc", None, "package"),
        ("a" * 401, None, "package"),
        ("mcp/time:1", "2", "version"),
        (f"mcp/time@{DIGEST}", "2", "version"),
        ("mcp/time", "a/b", "version"),
        ("mcp/time", "", "version"),
        ("mcp/time", "sha512:abc", "version"),
    ],
)
def test_what_is_no_image_is_refused(package: str, version: str | None, path: str) -> None:
    with pytest.raises(WrongPackageError) as refused:
        oci_image(package, version)
    assert refused.value.violation.path == path
