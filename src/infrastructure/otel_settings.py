"""Settings of OpenTelemetry, under the names of its specification."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from infrastructure.runtime import setting_values as values

Exporter = Annotated[Literal["otlp", "none"], BeforeValidator(values.lower)]


class OtelSettings(BaseModel):
    """Part of `Settings`. Traces go to a collector that is named; metrics and logs only if they are
    asked for."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)

    otel_endpoint: values.HttpUrl | None = Field(
        default=None,
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="the http or https URL of a collector that takes OTLP over HTTP",
        examples=["http://127.0.0.1:4318"],
    )
    otel_headers: Annotated[SecretStr, AfterValidator(values.otel_headers)] | None = Field(
        default=None,
        validation_alias="OTEL_EXPORTER_OTLP_HEADERS",
        description="NAME=VALUE separated by commas",
        examples=["authorization=Bearer%20…"],
    )
    otel_traces: Exporter = Field(
        default="otlp", validation_alias="OTEL_TRACES_EXPORTER", description="otlp or none", examples=["none"]
    )
    otel_metrics: Exporter = Field(
        default="none", validation_alias="OTEL_METRICS_EXPORTER", description="otlp or none", examples=["otlp"]
    )
    otel_metrics_interval_ms: int = Field(
        default=60_000,
        ge=1_000,
        le=3_600_000,
        validation_alias="OTEL_METRIC_EXPORT_INTERVAL",
        description="a number of milliseconds from 1000 to 3600000",
        examples=["15000"],
    )
    otel_logs: Exporter = Field(
        default="none", validation_alias="OTEL_LOGS_EXPORTER", description="otlp or none", examples=["otlp"]
    )

    @property
    def otel_header_values(self) -> dict[str, str]:
        """Headers of every export."""
        return {} if self.otel_headers is None else values.parse_otel_headers(self.otel_headers.get_secret_value())

    @property
    def traces_endpoint(self) -> str | None:
        return self.otel_endpoint if self.otel_traces == "otlp" else None

    @property
    def metrics_endpoint(self) -> str | None:
        return self.otel_endpoint if self.otel_metrics == "otlp" else None

    @property
    def logs_endpoint(self) -> str | None:
        return self.otel_endpoint if self.otel_logs == "otlp" else None
