"""Check of the registry that an image names. Above: the adapter of container engines. Below: the
egress guard."""

import ipaddress
import logging
import socket
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver

from domain.mcp.images import OciImage
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.mcp.containers.engine import EngineError, EngineFault

logger = logging.getLogger(__name__)


class RegistryGuard:
    """The egress guard permits a registry with all addresses of its name: the engine, which nothing
    holds, requests it from this machine. The registry that the engine uses by default is the
    operator's choice."""

    def __init__(self, egress: EgressPolicy, resolver: AbstractResolver) -> None:
        self._egress = egress
        self._resolver = resolver

    async def check(self, image: OciImage) -> None:
        """Raises EngineError."""
        if image.registry is None:
            return
        url = f"https://{image.registry}"
        try:
            self._egress.check(url)
            host = urlsplit(url).hostname or ""
            for each in await self._resolver.resolve(host, family=socket.AF_UNSPEC):
                self._egress.check_address(host, ipaddress.ip_address(each["host"].partition("%")[0]))
        except EgressBlockedError as blocked:
            logger.warning("registry of an image refused: %s", blocked.advice)
            raise EngineError(EngineFault.REFUSED, blocked.reason) from blocked
        except OSError as exc:
            detail = "The name of the image's registry cannot be resolved."
            raise EngineError(EngineFault.REGISTRY_UNREACHABLE, detail) from exc
