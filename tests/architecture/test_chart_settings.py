"""The schema of the Helm chart's values knows which settings there are, and which of them are
secrets."""

import json
import re
from pathlib import Path

import pytest

from docsite.chart_settings import CHART_SCHEMA, chart_schema, secret_variables

SCHEMA = Path(__file__).resolve().parents[2] / CHART_SCHEMA
pytestmark = pytest.mark.requirement("K6")


def test_the_schema_has_the_settings_of_the_code() -> None:
    text = SCHEMA.read_text(encoding="utf-8")
    assert text == chart_schema(text), "`make settings` renews it"


def test_no_secret_is_a_value_of_the_chart() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    refused = re.compile(schema["properties"]["env"]["propertyNames"]["not"]["pattern"])
    secrets = secret_variables()
    assert {"DRAGOMAN_DATABASE_URL", "DRAGOMAN_SECRET_KEY", "DRAGOMAN_VAULT_TOKEN", "OPENAI_API_KEY"} <= secrets
    assert {"DRAGOMAN_SIEM_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS", "LANGFUSE_SECRET_KEY"} <= secrets
    spelled = {spelling for name in secrets for spelling in (name, name.lower(), name.title())}  # all are read
    assert {name for name in spelled if not refused.search(name)} == set()
    assert secrets.isdisjoint(schema["definitions"]["settings"]["enum"])
