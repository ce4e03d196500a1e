"""The settings that values of the Helm chart may have, in its schema: those that are no secrets and
that the chart does not set."""

import json
import re

from infrastructure.settings import PREFIX, Settings, variable_name

CHART_SCHEMA = "deploy/helm/values.schema.json"

_OF_THE_CHART = {f"{PREFIX}{name}" for name in ("HOME", "HOST", "PORT", "METRICS_PORT")}
_LIST = re.compile(r'("settings": \{"enum": \[)[^\]]*\]')


def secret_variables() -> frozenset[str]:
    return frozenset(
        variable_name(name)
        for name, field in Settings.model_fields.items()
        if name == "database_url" or "SecretStr" in str(field.annotation)
    )


def chart_schema(text: str) -> str:
    """The schema of the chart's values with the settings of now."""
    names = sorted({variable_name(name) for name in Settings.model_fields} - secret_variables() - _OF_THE_CHART)
    entries = ",".join(f"\n      {json.dumps(name)}" for name in names)
    return _LIST.sub(lambda found: f"{found[1]}{entries}\n    ]", text)
