"""Settings of model providers: the identity of the machine in Microsoft Entra."""

from pathlib import Path

import pytest

from infrastructure.assembly.models import entra_workload
from infrastructure.settings import SettingsError, load_settings

_OF_THE_CLUSTER = {
    "AZURE_FEDERATED_TOKEN_FILE": "/var/run/secrets/azure/tokens/azure-identity-token",
    "AZURE_TENANT_ID": "11111111-2222-3333-4444-555555555555",
    "AZURE_CLIENT_ID": "66666666-7777-8888-9999-000000000000",
    "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.us/",
}


@pytest.mark.requirement("H4")
def test_a_cluster_on_azure_says_which_workload_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _OF_THE_CLUSTER.items():
        monkeypatch.setenv(name, value)
    workload = entra_workload(load_settings())
    assert workload is not None
    assert workload.token_file == Path(_OF_THE_CLUSTER["AZURE_FEDERATED_TOKEN_FILE"])
    assert (workload.tenant_id, workload.client_id) == (
        _OF_THE_CLUSTER["AZURE_TENANT_ID"],
        _OF_THE_CLUSTER["AZURE_CLIENT_ID"],
    )
    assert workload.authority.startswith("https://login.microsoftonline.us")


@pytest.mark.parametrize("missing", ["AZURE_FEDERATED_TOKEN_FILE", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"])
def test_a_machine_that_is_no_whole_workload_has_the_identity_of_its_metadata_server(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name, value in _OF_THE_CLUSTER.items():
        if name != missing:
            monkeypatch.setenv(name, value)
    assert entra_workload(load_settings()) is None


def test_a_tenant_that_would_change_the_address_of_tokens_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TENANT_ID", "../../elsewhere")
    with pytest.raises(SettingsError, match="AZURE_TENANT_ID"):
        load_settings()
