"""Addresses at which clouds give out tokens. Those in keys of customers are never used."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EntraWorkload:
    """The machine as a workload that Microsoft Entra knows by the tokens of its cluster. The
    cluster renews the file."""

    token_file: Path
    tenant_id: str
    client_id: str
    authority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAddresses:
    """`metadata` is the server that a machine in a cloud asks for its own identity."""

    google_token: str = "https://oauth2.googleapis.com/token"
    google_metadata: str = "http://169.254.169.254/computeMetadata/v1/instance/service-accounts/default/token"
    entra: str = "https://login.microsoftonline.com"
    azure_metadata: str = "http://169.254.169.254/metadata/identity/oauth2/token"
    entra_workload: EntraWorkload | None = None
    """None: the machine has the identity that its metadata server knows."""
    sts: str | None = None
    """None: the address of the region."""

    def aws_sts(self, region: str) -> str:
        return self.sts or f"https://sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
