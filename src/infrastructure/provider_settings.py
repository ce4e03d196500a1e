"""Settings of model providers: those of the environment, and the identity that the machine has in
its cloud."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from infrastructure.runtime import setting_values as values


class ProviderSettings(BaseModel):
    """Part of `Settings`. Kubernetes on Azure gives its workloads the four variables `AZURE_…`."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)

    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: values.HttpUrl | None = Field(
        default=None,
        validation_alias="OPENAI_BASE_URL",
        description="an http or https URL",
        examples=["http://127.0.0.1:8000/v1"],
    )
    openai_wire: Annotated[Literal["auto", "responses", "chat"], BeforeValidator(values.lower)] = Field(
        default="auto", description="auto, responses or chat", examples=["responses"]
    )
    openai_echo_reasoning: Annotated[Literal["tool_loop", "always", "never"], BeforeValidator(values.lower)] = Field(
        default="tool_loop", description="tool_loop, always or never", examples=["always"]
    )
    cloud_identity: bool = Field(default=False, description="true or false", examples=["true"])
    anthropic_api_key: SecretStr | None = Field(default=None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: values.HttpUrl | None = Field(
        default=None,
        validation_alias="ANTHROPIC_BASE_URL",
        description="an http or https URL",
        examples=["https://api.anthropic.com"],
    )
    azure_federated_token_file: Annotated[Path, AfterValidator(values.absolute)] | None = Field(
        default=None,
        validation_alias="AZURE_FEDERATED_TOKEN_FILE",
        description="a file",
        examples=["/var/run/secrets/azure/tokens/azure-identity-token"],
    )
    azure_tenant_id: str | None = Field(
        default=None,
        validation_alias="AZURE_TENANT_ID",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$",
        description="the id or a domain of a tenant",
        examples=["contoso.onmicrosoft.com"],
    )
    azure_client_id: str | None = Field(
        default=None,
        validation_alias="AZURE_CLIENT_ID",
        pattern=r"^[A-Za-z0-9-]+$",
        description="the id of an application or a managed identity",
        examples=["11111111-2222-3333-4444-555555555555"],
    )
    azure_authority_host: values.HttpUrl = Field(
        default="https://login.microsoftonline.com",
        validation_alias="AZURE_AUTHORITY_HOST",
        description="an http or https URL",
        examples=["https://login.microsoftonline.us"],
    )
