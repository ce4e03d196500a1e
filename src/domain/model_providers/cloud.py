"""Cloud settings of a model provider: region, project, and the identity of calls."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import Violation

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_REGION = re.compile(r"[a-z]{2,}(?:-[a-z0-9]+){0,4}")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}")
_ACCESS_KEY = re.compile(
    r"(?P<id>[A-Z0-9]{16,128}):(?P<secret>[A-Za-z0-9/+=]{16,256})(?::(?P<token>[A-Za-z0-9/+=]{16,8000}))?"
)
_SERVICE_ACCOUNT = ("client_email", "private_key")


class CloudIdentity(StrEnum):
    """Whose identity calls have: `key`, that of the provider's key; `service`, that of the machine
    on which Dragoman runs (instance role, workload identity, metadata server). The values are part
    of the public contract."""

    KEY = "key"
    SERVICE = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudSettings:
    """Of providers in clouds. Each kind takes some of these.

    - `project`: of Google Cloud.
    - `role`: ARN of a role of AWS that the identity assumes; `profile`: of the machine's
      configuration of AWS.
    - `tenant_id`, `client_id`: of an application in Microsoft Entra, whose secret is the key. With
      the machine's identity, `client_id` is a managed identity.
    """

    region: str | None = None
    project: str | None = None
    identity: CloudIdentity = CloudIdentity.KEY
    role: str | None = None
    profile: str | None = None
    tenant_id: str | None = None
    client_id: str | None = None


NO_CLOUD = CloudSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """Access key of AWS; `token` of temporary keys."""

    key_id: str
    secret: str
    token: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self.key_id, self.secret, self.token) if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """Key of a service account of Google Cloud. Addresses in its JSON are ignored."""

    email: str
    private_key: str
    key_id: str | None = None


def aws_keys(key: str) -> AwsKeys | None:
    """The access key in `ID:SECRET` or `ID:SECRET:TOKEN`; None for an API key of Bedrock."""
    found = _ACCESS_KEY.fullmatch(key)
    return None if found is None else AwsKeys(key_id=found["id"], secret=found["secret"], token=found["token"])


def service_account(key: str) -> ServiceAccount | None:
    """The service account of a key that is its JSON file."""
    try:
        read = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or read.get("type") != "service_account":
        return None
    if not all(isinstance(read.get(name), str) for name in _SERVICE_ACCOUNT):
        return None
    key_id = read.get("private_key_id")
    return ServiceAccount(
        email=read["client_email"], private_key=read["private_key"], key_id=key_id if isinstance(key_id, str) else None
    )


def cloud_violations(cloud: CloudSettings, taken: frozenset[str], kind: str) -> list[Violation]:
    """`taken` are the settings that the kind takes."""
    forms = {"region": _REGION, "role": _ROLE}
    wrong = []
    for name in ("region", "project", "role", "profile", "tenant_id", "client_id"):
        value: str | None = getattr(cloud, name)
        if value is None:
            continue
        if name not in taken:
            wrong.append(Violation(path=f"cloud.{name}", message=f"is not a setting of kind {kind}"))
        elif forms.get(name, _WORD).fullmatch(value) is None:
            wrong.append(Violation(path=f"cloud.{name}", message=_EXPECTED.get(name, "must be an identifier")))
    if cloud.identity is not CloudIdentity.KEY and "identity" not in taken:
        wrong.append(Violation(path="cloud.identity", message=f"must be {CloudIdentity.KEY} for kind {kind}"))
    if cloud.profile is not None and cloud.identity is CloudIdentity.KEY:
        wrong.append(Violation(path="cloud.profile", message=f"needs the identity {CloudIdentity.SERVICE}"))
    return wrong


_EXPECTED = {
    "region": "must be a region, such as eu-central-1",
    "role": "must be the ARN of a role, such as arn:aws:iam::123456789012:role/models",
}
