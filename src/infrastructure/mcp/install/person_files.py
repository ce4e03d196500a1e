"""The `PersonFiles` port: directories in which processes of one person store files."""

import asyncio

from application.mcp.account_secrets import PersonSecretStore
from domain.mcp.given_secrets import account_owner
from domain.mcp.server import McpServer
from infrastructure.mcp.install.directories import InstallDirectories


class LocalPersonFiles:
    def __init__(self, *, directories: InstallDirectories, person_secrets: PersonSecretStore) -> None:
        self._directories = directories
        self._person_secrets = person_secrets

    async def tidy(self) -> None:
        """At startup: remove what is left of people who were removed, or have disconnected on
        another machine."""
        for owner in await asyncio.to_thread(self._directories.people):
            if not await self._person_secrets.has(owner):
                await asyncio.to_thread(self._directories.remove_data_of, owner)

    async def remove(self, server: McpServer) -> None:
        if (owner := account_owner(server)) is not None:
            await asyncio.to_thread(self._directories.remove_data_of, owner)
