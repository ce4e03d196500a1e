"""Deployments of a model provider as two columns: JSON, and their keys encrypted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from domain.model_providers.deployment import Deployment
from infrastructure.persistence.columns.fields import json_fields
from infrastructure.persistence.secrets.box import SecretBox

_deployment = json_fields(Deployment)


def written_deployments(deployments: Sequence[Deployment], box: SecretBox) -> dict[str, object]:
    """The columns `deployments` and `deployment_keys`; null without deployments, or without
    keys."""
    keys = {entry.name: entry.api_key for entry in deployments if isinstance(entry.api_key, str)}
    plain = [replace(entry, api_key=None) if entry.name in keys else entry for entry in deployments]
    return {
        "deployments": [_deployment.write(entry) for entry in plain] or None,
        "deployment_keys": box.encrypt(json.dumps(keys).encode()) if keys else None,
    }


def read_deployments(stored: Any, sealed: bytes | None, box: SecretBox) -> tuple[Deployment, ...]:
    if not stored:
        return ()
    keys: dict[str, str] = {} if sealed is None else json.loads(box.decrypt(sealed))
    entries = [_deployment.read(entry) for entry in stored]
    return tuple(replace(entry, api_key=keys[entry.name]) if entry.name in keys else entry for entry in entries)
