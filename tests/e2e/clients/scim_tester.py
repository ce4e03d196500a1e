"""Runs an independent tester of SCIM servers; prints what it found as JSON. Runs in the peers'
environment.

Arguments: the address of SCIM, and the token."""

import json
import sys

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import check_server


def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with Client(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
        results = check_server(SyncSCIMClient(http))
    found = [{"title": each.title, "status": each.status.name, "reason": each.reason} for each in results]
    sys.stdout.write(json.dumps(found))


main(*sys.argv[1:])
