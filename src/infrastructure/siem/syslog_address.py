"""Address of a receiver of syslog."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogAddress:
    transport: Literal["tcp", "tls", "udp"]
    host: str
    port: int
