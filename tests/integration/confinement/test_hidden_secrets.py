"""Secrets of a process that serves are not in its environment, and others of its user cannot look
into it."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, json, os
from infrastructure.lifecycle import hide_secrets
from infrastructure.settings import load_settings
settings = load_settings()
hide_secrets(settings)
kept = sorted(name for name in os.environ if name.startswith(("DRAGOMAN_", "OPENAI_", "HTTP_")))
print(json.dumps([kept, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), settings.secret_keys]))
"""


@pytest.mark.requirement("S1")
def test_secrets_leave_the_environment_once_they_are_read() -> None:
    given = {
        "DRAGOMAN_SECRET_KEY": "a-passphrase-of-tests-long-enough",
        "DRAGOMAN_DATABASE_URL": "sqlite:////nowhere/dragoman.db",
        "OPENAI_API_KEY": "a key",
        "DRAGOMAN_LOG_LEVEL": "info",
        "HTTP_PROXY": "http://user:password@proxy:1",
    }
    unset = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**unset, **given}, capture_output=True, text=True, check=True
    )
    kept, dumpable, keys = json.loads(done.stdout)
    # Installers use the proxy.
    assert kept == ["DRAGOMAN_LOG_LEVEL", "HTTP_PROXY"]
    assert dumpable == 0
    assert keys == [given["DRAGOMAN_SECRET_KEY"]]
