"""The entry of an MCP registry that a server was made from: `REGISTRY:NAMESPACE/NAME@VERSION`.
Pure."""

import re
from dataclasses import dataclass

_ORIGIN = re.compile(r"(?P<registry>[a-z0-9][a-z0-9-]{0,31}):(?P<name>[A-Za-z0-9.-]+/[A-Za-z0-9._-]+)@(?P<version>\S+)")
_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOrigin:
    registry: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.registry}:{self.name}@{self.version}"

    @classmethod
    def can_name(cls, name: str, version: str) -> bool:
        """Whether servers can keep this entry of any registry as their origin."""
        return cls.read(str(cls(registry="r" * 32, name=name, version=version))) is not None

    @classmethod
    def read(cls, text: str) -> "EntryOrigin | None":
        """None for a text of another form."""
        found = _ORIGIN.fullmatch(text) if len(text) <= _MAX else None
        return None if found is None else cls(registry=found["registry"], name=found["name"], version=found["version"])
