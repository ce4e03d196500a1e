"""Installs container images: the engine pulls one, and its digest is recorded."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from domain.ids import McpServerId
from domain.mcp.images import oci_image
from domain.mcp.server import McpServerConfig
from infrastructure.mcp.containers.engine import ContainerEngine, EngineError, EngineFault
from infrastructure.mcp.containers.marks import SERVER_LABEL
from infrastructure.mcp.install.directories import Manifest
from infrastructure.mcp.install.job import InstallJob

logger = logging.getLogger(__name__)

_KINDS = {
    EngineFault.UNREACHABLE: McpInstallFailureKind.RUNTIME_MISSING,
    EngineFault.NOT_FOUND: McpInstallFailureKind.PACKAGE_NOT_FOUND,
    EngineFault.REFUSED: McpInstallFailureKind.REGISTRY_REFUSED,
    EngineFault.REGISTRY_UNREACHABLE: McpInstallFailureKind.REGISTRY_UNREACHABLE,
}


class OciImages:
    """- The registry is always asked: an image that is in the engine already is not open to all
    organizations.
    - A later start runs the digest that was pulled, whatever its tag names then.
    - A failure is classified for the organization. What engine and registry say of it is in the
      service's log only.
    - An image that an installation brought is removed with the last installation of it; one that
      the engine had before stays.
    - An image that cannot be removed stays, and the log says so.
    """

    def __init__(self, *, engine: ContainerEngine) -> None:
        self._engine = engine

    async def install(
        self, config: McpServerConfig, job: InstallJob, *, brought: frozenset[str], recorded: str | None = None
    ) -> Manifest:
        """Pull the image, or the digest of the `recorded` version, whatever the tag names now.
        `brought` are the images that other installations brought. Raises McpInstallFailure."""
        assert config.package is not None  # validated by the configuration
        image = oci_image(config.package, config.version)
        if recorded is not None:
            image = replace(image, digest=recorded.rpartition("@")[2])
        job.step("downloading", until=100)
        try:
            pulled = await self._engine.pull(image, job.line)
        except EngineError as error:
            logger.warning("pulling an image failed: %s", error.said or error, extra={"image": image.reference})
            raise McpInstallFailure(_KINDS[error.fault], str(error)) from error
        digest = pulled.digest
        version = recorded or (digest if image.digest is not None else f"{image.tag}@{digest}")
        return Manifest(
            version=version,
            packages={image.repository: image.tag},
            hashes={image.repository: [digest]},
            brought=not pulled.was_there or image.pinned(digest) in brought,
        )

    async def remove_containers(self, server_id: McpServerId) -> None:
        """Remove those of a server."""
        try:
            await self._engine.remove_all(SERVER_LABEL, lambda value: value == server_id)
        except EngineError as error:
            logger.warning("containers stay in the engine: %s", error.said or error)

    async def remove(self, images: Iterable[str]) -> None:
        """Remove images that no container has."""
        try:
            for image in images:
                if not await self._engine.remove_image(image):
                    logger.info("an image stays in the engine, where something else has it", extra={"image": image})
        except EngineError as error:
            logger.warning("images stay in the engine: %s", error.said or error)


def images_of(manifests: Iterable[Manifest | None]) -> frozenset[str]:
    """The images among installations, with their digests."""
    return frozenset(pinned_image(each) for each in manifests if each is not None and _is_image(each))


def brought_images(manifests: Iterable[Manifest | None]) -> frozenset[str]:
    """Those that installations brought to the engine."""
    return images_of(each for each in manifests if each is not None and each.brought)


def _is_image(manifest: Manifest) -> bool:
    """Versions of images end with their digest, those of packages never with a hash."""
    hashes = [each for of_one in manifest.hashes.values() for each in of_one]
    return len(hashes) == 1 and manifest.version.endswith(hashes[0])


def pinned_image(manifest: Manifest) -> str:
    """What a container is made of: the image with the digest that was installed."""
    ((repository, (digest,)),) = manifest.hashes.items()
    return f"{repository}@{digest}"
