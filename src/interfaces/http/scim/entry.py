"""The entry to SCIM, which loads its library on the first request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from application.mcp.oauth_client import PublicAddress
from application.system.lazy import Lazy
from infrastructure.container import Container

PATH = "/scim/v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScimAnswer:
    status: int
    body: bytes
    headers: Mapping[str, str]


class ScimAnswers(Protocol):
    """Answers requests of directories."""

    async def answer(
        self,
        *,
        method: str,
        base_url: str,
        path: str,
        query: Mapping[str, str],
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
    ) -> ScimAnswer: ...


class ScimEntry:
    """Addresses in answers are below the public URL of the service."""

    def __init__(self, server: Lazy[ScimAnswers], *, address: PublicAddress) -> None:
        self._server = server
        self._address = address

    async def answer(
        self,
        *,
        method: str,
        base_url: str,
        path: str,
        query: Mapping[str, str],
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
    ) -> ScimAnswer:
        server = await self._server.warm()
        root = (self._address.url or base_url).rstrip("/") + PATH
        return await server.answer(method=method, base_url=root, path=path, query=query, headers=headers, body=body)


def scim_entry(container: Container) -> ScimEntry:
    def load() -> ScimAnswers:
        from interfaces.http.scim.server import ScimServer
        from interfaces.http.scim.storage import DirectoryUseCases

        use_cases = DirectoryUseCases(
            provision_user=container.provision_user(),
            update_provisioned_user=container.update_provisioned_user(),
            deprovision_user=container.deprovision_user(),
            find_provisioned_users=container.find_provisioned_users(),
            create_group=container.create_group(),
            update_group=container.update_group(),
            delete_group=container.delete_group(),
            find_groups=container.find_groups(),
        )
        return ScimServer(authenticate_directory=container.authenticate_directory(), use_cases=use_cases)

    return ScimEntry(Lazy(load), address=container.public_address())
