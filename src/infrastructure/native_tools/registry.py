"""The native tools of this installation, by type."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from application.tools.ports import NativeTool
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.native_tools.code_execution import CodeExecutionTool
from infrastructure.native_tools.displayable import DISPLAYABLE_TOOLS


class ClosableTool(NativeTool, Protocol):
    """A native tool that holds something to be given back."""

    async def close(self) -> None:
        """Give it back."""
        ...


class NativeTools:
    """Executable tools with what runs them, and displayable ones, which have no run here."""

    def __init__(self, *, executable: Iterable[ClosableTool], displayable: Iterable[Tool]) -> None:
        self._executable = {native.tool.type: native for native in executable}
        self._displayable = {tool.type: tool for tool in displayable}
        if any(native.tool.is_displayable for native in self._executable.values()) or not all(
            tool.is_displayable for tool in self._displayable.values()
        ):
            raise ValueError("a tool is either executed here or displayed by the client, as its type says")

    @property
    def executable(self) -> Mapping[ToolType, NativeTool]:
        """What runs the calls of each executable type."""
        return MappingProxyType(self._executable)

    @property
    def displayable(self) -> Mapping[ToolType, Tool]:
        """The tools that the client renders and settles."""
        return MappingProxyType(self._displayable)

    def available(self) -> tuple[Tool, ...]:
        """Every native tool, by name."""
        tools = [*(native.tool for native in self._executable.values()), *self._displayable.values()]
        return tuple(sorted(tools, key=lambda tool: tool.name))

    async def close(self) -> None:
        """End what the tools keep running."""
        for native in self._executable.values():
            await native.close()


def native_tools() -> NativeTools:
    """The tools every installation has."""
    return NativeTools(executable=(CodeExecutionTool(),), displayable=DISPLAYABLE_TOOLS)
