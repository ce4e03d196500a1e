"""This process as a resource of OpenTelemetry. Heavy to import: for sinks, on a sending thread."""

from functools import cache
from importlib.metadata import version
from uuid import uuid4

from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    SERVICE_VERSION,
    TELEMETRY_SDK_LANGUAGE,
    TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
    Resource,
)


@cache
def process_resource() -> Resource:
    """The same for traces, metrics and logs of the process."""
    return Resource(
        {
            SERVICE_NAME: "dragoman",
            SERVICE_VERSION: version("dragoman"),
            SERVICE_INSTANCE_ID: str(uuid4()),
            TELEMETRY_SDK_NAME: "opentelemetry",
            TELEMETRY_SDK_LANGUAGE: "python",
            TELEMETRY_SDK_VERSION: version("opentelemetry-sdk"),
        }
    )
