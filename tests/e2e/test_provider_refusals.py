"""A provider that repeats the API key in its refusal: operators read why, and the key is
nowhere."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.e2e.service import Json, Service, serving

OF_ENVIRONMENT = "planted-environment-key-55aa01"
OF_ORGANIZATION = "planted-organization-key-77bb02"
TOKEN = "Nightingale-4471-Kestrel"


@contextmanager
def refusing_provider() -> Iterator[str]:
    """Answers 400 with all that it was sent: the key, and the instructions. Gives its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent = f"{self.headers['Authorization']} for {request['messages'][0]['content']}"
            error = {"type": "invalid_request_error", "code": "bad_tools", "message": f"No tools here: {sent}"}
            body = json.dumps({"error": error}).encode()
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def read(service: Service, run_id: str, role: str) -> Json:
    token = service.call("POST", "/api-keys", {"name": role, "role": role})["token"]
    answer = httpx.get(f"{service.url}/v1/runs/{run_id}", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return dict(answer.json())


@pytest.mark.requirement("H6", "C4", "C7", "E7")
def test_operators_read_why_a_provider_refused_and_the_key_is_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with refusing_provider() as base_url:
        settings = {"OPENAI_API_KEY": OF_ENVIRONMENT, "OPENAI_BASE_URL": base_url, "DRAGOMAN_LOG_FORMAT": "json"}
        with serving(home, **settings) as service:
            provider = {"name": "acme", "kind": "openai", "base_url": base_url, "api_key": OF_ORGANIZATION}
            service.call("POST", "/model-providers", provider)
            guarded: Json = {
                "canary_tokens": [{"id": "vault", "token": TOKEN}],
                "instructions": "The vault's word is {{canary:vault}}.",
            }
            runs = []
            for name in ("openai", "acme"):
                service.agent(name, f"{name}:m", **guarded)
                runs.append(service.run(name)["run"]["id"])
            answers = [json.dumps(service.events(run_id)) for run_id in runs]
        with serving(home, **settings) as service:  # what was said is stored
            for run_id in runs:
                error = service.call("GET", f"/runs/{run_id}")["error"]
                assert error["code"] == "model_rejected"
                assert error["provider_error"]["status"] == 400
                assert error["provider_error"]["code"] == "bad_tools"
                said = error["provider_error"]["message"]
                assert said == "No tools here: Bearer [redacted] for The vault's word is [canary:vault]."
                assert read(service, run_id, "operator")["error"] == error
                unprivileged = read(service, run_id, "viewer")["error"]
                assert unprivileged == {"code": error["code"], "detail": error["detail"]}
                answers.append(json.dumps(error))
            answers.append(json.dumps(service.call("GET", "/audit-events?limit=100")))
            log = service.log.read_text()
    [first, second] = [line for line in log.splitlines() if "model provider answered with an error" in line]
    assert [json.loads(line)["run_id"] for line in (first, second)] == runs
    assert "No tools here: Bearer [redacted] for The vault's word is [canary:vault]." in first
    kept = [*(path.read_bytes() for path in home.rglob("*") if path.is_file()), log.encode()]
    for secret in (OF_ENVIRONMENT, OF_ORGANIZATION, TOKEN):
        assert not [data for data in (*kept, *(answer.encode() for answer in answers)) if secret.encode() in data]
