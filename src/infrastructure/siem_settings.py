"""Settings of the receiver of audit entries."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from infrastructure.runtime import setting_values as values


class SiemSettings(BaseModel):
    """Part of `Settings`."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)

    siem_url: Annotated[str, AfterValidator(values.siem_url)] | None = Field(
        default=None,
        repr=False,
        description="an http or https URL, or syslog+tcp, syslog+tls or syslog+udp with host and port",
        examples=["syslog+tls://siem.internal:6514"],
    )
    siem_headers: Annotated[SecretStr, AfterValidator(values.otel_headers)] | None = Field(
        default=None,
        description="NAME=VALUE separated by commas, with URL-encoded values",
        examples=["authorization=Splunk%20…"],
    )
    siem_format: Annotated[Literal["ndjson", "json"], BeforeValidator(values.lower)] = Field(
        default="ndjson", description="ndjson or json", examples=["json"]
    )
    siem_ca_file: Annotated[Path, AfterValidator(values.certificates)] | None = Field(
        default=None, description="a readable file of certificates in PEM", examples=["/etc/dragoman/siem-ca.pem"]
    )

    @property
    def siem_header_values(self) -> dict[str, str]:
        return {} if self.siem_headers is None else values.parse_otel_headers(self.siem_headers.get_secret_value())
