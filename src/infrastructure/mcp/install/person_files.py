"""The `PersonFiles` port: directories in which processes of one person store files."""

import asyncio

from domain.mcp.given_secrets import account_owner
from domain.mcp.server import McpServer
from infrastructure.mcp.install.directories import InstallDirectories


class LocalPersonFiles:
    def __init__(self, *, directories: InstallDirectories) -> None:
        self._directories = directories

    async def remove(self, server: McpServer) -> None:
        if (owner := account_owner(server)) is not None:
            await asyncio.to_thread(self._directories.remove_data_of, owner)
