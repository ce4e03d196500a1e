"""Deployments of a model provider: other addresses and keys for the same models."""

import re
from dataclasses import dataclass, field

from domain.secrets.secret import SecretRef, SecretValue

MAX_DEPLOYMENTS = 32
"""Per provider."""
MAX_WEIGHT = 1_000

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One of several places that serve a provider's models.

    - `name` is unique in the provider; logs and test results contain it.
    - `base_url` and `api_key` None are those of the provider.
    - `weight` is its share of the threads, relative to the other deployments.
    """

    name: str
    base_url: str | None = None
    api_key: SecretValue | None = field(default=None, repr=False)
    weight: int = 1

    @property
    def secret_name(self) -> str | None:
        """The name of the secret that holds the key, if the key is a reference."""
        return self.api_key.name if isinstance(self.api_key, SecretRef) else None


def is_legal_deployment_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None
