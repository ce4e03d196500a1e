"""Settings of processes: the memory of this one, and what MCP servers and the programs that install
them may use."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from infrastructure.mcp.transports.process_limits import DEFAULT_PROCESS_LIMITS
from infrastructure.runtime import setting_values as values
from infrastructure.runtime.available_memory import available_memory

_MEMORY_PER_BYTE = 32
"""A body or a transcript occupies up to eight times its bytes while it is decoded, checked and
encoded again."""


class ProcessSettings(BaseModel):
    """Part of `Settings`."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)

    mcp_sandbox: Annotated[
        Literal["auto", "landlock", "bubblewrap", "container", "off"], BeforeValidator(values.lower)
    ] = Field(default="auto", description="auto, landlock, bubblewrap, container or off", examples=["landlock"])
    mcp_readable: Annotated[str, AfterValidator(values.paths)] = Field(
        default="", description="absolute paths separated by commas", examples=["/srv/reference,/srv/tools"]
    )
    mcp_writable: Annotated[str, AfterValidator(values.paths)] = Field(
        default="", description="absolute paths separated by commas", examples=["/srv/documents"]
    )
    mcp_ports: Annotated[str, AfterValidator(values.ports)] = Field(
        default="all", description="all, none, or numbers of TCP ports separated by commas", examples=["443,80"]
    )
    mcp_process_limits: Annotated[str, AfterValidator(values.process_limits)] = Field(
        default=DEFAULT_PROCESS_LIMITS,
        description="resource limits of started MCP servers, NAME=NUMBER separated by commas",
        examples=["core=0,nofile=4096,memory=1073741824,processes=64"],
    )

    mcp_container_engine: Annotated[str, AfterValidator(values.engine)] = Field(
        default="auto",
        description="auto, none, or the UNIX socket of Docker or Podman",
        examples=["unix:///run/user/1000/podman/podman.sock"],
    )
    mcp_container_cpus: float = Field(
        default=2.0, gt=0, le=1024, description="a number of processors up to 1024", examples=["0.5"]
    )

    memory_bytes: int | None = Field(
        default=None,
        ge=64 * 1024 * 1024,
        le=2**50,
        description="a number of bytes from 67108864: memory that this process may use",
        examples=["2147483648"],
    )

    @property
    def work_bytes(self) -> int:
        """Bytes of bodies that requests hold, and bytes of transcripts that runs hold: each
        occupies a quarter of the memory at most, as objects of several times their size."""
        return (self.memory_bytes or available_memory()) // _MEMORY_PER_BYTE

    @property
    def readable_paths(self) -> tuple[Path, ...]:
        return tuple(map(Path, values.entries(self.mcp_readable)))

    @property
    def writable_paths(self) -> tuple[Path, ...]:
        return tuple(map(Path, values.entries(self.mcp_writable)))

    @property
    def allowed_ports(self) -> tuple[int, ...] | None:
        """The TCP ports that started servers may connect to; None for all, empty for no network."""
        return values.parse_ports(self.mcp_ports)
