"""The identity of a provider's calls, where a key in a header is not all."""

from domain.model_providers.cloud import service_account
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.exchange import ProviderHttp
from infrastructure.llm.identities.access_tokens import AccessTokens, IdentityHeaders, TokenEndpoint
from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from infrastructure.llm.identities.entra_tokens import (
    ApplicationTokens,
    ManagedIdentityTokens,
    WorkloadTokens,
    managed_identity_url,
    token_url,
)
from infrastructure.llm.identities.google_tokens import MachineTokens, ServiceAccountTokens
from infrastructure.llm.identities.identified_http import IdentifiedHttp
from infrastructure.llm.providers import ProviderConfig


def identified(
    provider: ProviderConfig, http: ProviderHttp, machine: ProviderHttp, addresses: CloudAddresses
) -> ProviderHttp:
    """`http` with the provider's identity, if it has one. Keys are exchanged over `http`; `machine`
    reaches the metadata server, which the egress guard forbids to organizations."""
    if (key := _native_key(provider)) is not None:

        async def headers() -> dict[str, str]:
            return key

        return IdentifiedHttp(http, headers)
    tokens = _tokens(provider, http, machine, addresses)
    return http if tokens is None else IdentifiedHttp(http, IdentityHeaders(tokens, hide=provider.redactor).headers)


def _tokens(
    provider: ProviderConfig, http: ProviderHttp, machine: ProviderHttp, addresses: CloudAddresses
) -> AccessTokens | None:
    cloud, redactor = provider.cloud, provider.redactor()
    if provider.kind is ProviderKind.VERTEX:
        if provider.uses_service_identity:
            return MachineTokens(TokenEndpoint(machine, addresses.google_metadata, redactor))
        account = None if provider.api_key is None else service_account(provider.api_key)
        return (
            None
            if account is None
            else ServiceAccountTokens(account, TokenEndpoint(http, addresses.google_token, redactor))
        )
    if provider.kind is not ProviderKind.AZURE:
        return None
    if provider.uses_service_identity:
        return _of_azure(provider, machine, addresses)
    if cloud.tenant_id is None or cloud.client_id is None or provider.api_key is None:
        return None
    endpoint = TokenEndpoint(http, token_url(addresses.entra, cloud.tenant_id), redactor)
    return ApplicationTokens(client_id=cloud.client_id, secret=provider.api_key, endpoint=endpoint)


def _of_azure(provider: ProviderConfig, machine: ProviderHttp, addresses: CloudAddresses) -> AccessTokens:
    """The machine's identity on Azure: of a workload with a federated token, else that of its
    metadata server."""
    workload, wanted = addresses.entra_workload, provider.cloud.client_id
    if workload is None:
        url = managed_identity_url(addresses.azure_metadata, wanted)
        return ManagedIdentityTokens(TokenEndpoint(machine, url, provider.redactor()))
    return WorkloadTokens(
        client_id=wanted or workload.client_id,
        token_file=workload.token_file,
        endpoint=TokenEndpoint(machine, token_url(workload.authority, workload.tenant_id), provider.redactor()),
        hide=provider.redactor,
    )


def _native_key(provider: ProviderConfig) -> dict[str, str] | None:
    """The header of a key that SDKs are not given; None if there is none."""
    key = provider.header_key
    if key is None or not provider.is_native:
        return None
    return {"x-goog-api-key": key} if provider.kind is ProviderKind.GOOGLE else {"authorization": f"Bearer {key}"}
