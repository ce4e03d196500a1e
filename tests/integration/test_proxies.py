"""Requests through the operator's proxy, by each part that makes them; the egress guard decides
about their targets."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from application.models.ports import ModelError
from application.tools.ports import NativeToolError
from application.workflows.http_request import HttpAnswer, HttpCall, HttpCallFailed
from domain.model_providers.provider import ProviderKind
from domain.webhooks.delivery import Attempt, SendFailure
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.http.sessions import OutboundSessions
from infrastructure.http.workflow_requests import GuardedHttpCaller
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient
from infrastructure.native_tools.page_fetcher import PageFetcher
from infrastructure.native_tools.search.duckduckgo import DuckDuckGoSearch
from infrastructure.native_tools.search.provider import SearchError
from infrastructure.runtime.system import SystemClock
from infrastructure.webhooks.http_sender import HttpWebhookSender
from tests.integration.forward_proxy import ForwardProxy
from tests.unit.llm.model_requests import a_request, reply_of

pytestmark = pytest.mark.requirement("B16", "S4")

HOST = "target.test"
"""A name that only the proxy knows."""
PUBLIC_ONLY = EgressPolicy()
REPLY = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Names(AbstractResolver):
    """Resolves each name to the addresses given, or to none."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if not self._addresses:
            raise OSError("no such name")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in self._addresses
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def a_target(*, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that is a model provider, an MCP server, a receiver of webhooks and a page; its
    port."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions"):
            return web.Response(body=REPLY, content_type="text/event-stream")
        return web.Response(text="reached")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server(ssl=tls)
    try:
        yield server.port or 0
    finally:
        await server.close()


@asynccontextmanager
async def a_proxied_target() -> AsyncIterator[tuple[ForwardProxy, Proxies]]:
    async with a_target() as port, ForwardProxy({f"{HOST}:80": port}).open() as proxy:
        yield proxy, Proxies(http=proxy.url, https=proxy.url)


def a_provider(base_url: str = f"http://{HOST}/v1", *, guarded: bool = True) -> ProviderConfig:
    return ProviderConfig(name="acme", kind=ProviderKind.OPENAI, base_url=base_url, api_key="sk", guarded=guarded)


async def model_answer(proxies: Proxies, base_url: str = f"http://{HOST}/v1", *, guarded: bool = True) -> str:
    clients = HttpClients(proxies)
    models = ProviderModels(
        http=provider_http(clients), guarded_http=provider_http(clients, egress=PUBLIC_ONLY), outbound=PUBLIC_ONLY
    )
    try:
        reply = await reply_of(models.open(a_provider(base_url, guarded=guarded)).stream(a_request("acme:m")))
    finally:
        await models.close()
    return reply.text


async def mcp_answer(
    proxies: Proxies,
    url: str = f"http://{HOST}/mcp",
    *,
    resolver: AbstractResolver | None = None,
    trusted: ssl.SSLContext | None = None,
    requests: int = 1,
) -> str:
    client = RemoteClient(egress=PUBLIC_ONLY, proxies=proxies, resolver=resolver, ssl_context=trusted)
    endpoint = Endpoint(client, url, {}, 1024)
    texts = set()
    try:
        for _ in range(requests):
            async with endpoint.request("POST", {}, b"{}") as response:
                texts.add((await endpoint.read_body(response)).decode())
    finally:
        await client.close()
    [text] = texts
    return text


async def webhook_attempt(
    proxies: Proxies, url: str = f"http://{HOST}/hook", *, resolver: AbstractResolver | None = None
) -> Attempt:
    sender = HttpWebhookSender(
        egress=PUBLIC_ONLY, user_agent="d", clock=SystemClock(), resolver=resolver, http=HttpClients(proxies)
    )
    try:
        return await sender.send(url, {}, b"{}")
    finally:
        await sender.close()


async def workflow_answer(proxies: Proxies, url: str = f"http://{HOST}/step") -> HttpAnswer:
    caller = GuardedHttpCaller(egress=PUBLIC_ONLY, user_agent="d", http=HttpClients(proxies))
    try:
        return await caller.send(HttpCall(method="GET", url=url, headers=(), query=(), body=None, timeout_s=20.0))
    finally:
        await caller.close()


async def page(proxies: Proxies, url: str = f"http://{HOST}/page", resolver: AbstractResolver | None = None) -> bytes:
    fetcher = PageFetcher(egress=PUBLIC_ONLY, user_agent="d", resolver=resolver, http=HttpClients(proxies))
    try:
        return (await fetcher.fetch(url)).data
    finally:
        await fetcher.close()


async def test_calls_of_models_go_through_the_proxy() -> None:
    async with a_proxied_target() as (proxy, proxies):
        assert await model_answer(proxies) == "hi"
        assert await model_answer(proxies, guarded=False) == "hi"
    assert proxy.requests == [f"POST http://{HOST}/v1/chat/completions"] * 2


async def test_calls_of_mcp_servers_go_through_the_proxy() -> None:
    async with a_proxied_target() as (proxy, proxies):
        assert await mcp_answer(proxies) == "reached"
    assert proxy.requests == [f"POST http://{HOST}/mcp"]


async def test_webhooks_go_through_the_proxy() -> None:
    async with a_proxied_target() as (proxy, proxies):
        assert (await webhook_attempt(proxies)).status == 200
    assert proxy.requests == [f"POST http://{HOST}/hook"]


async def test_requests_of_workflows_and_pages_go_through_the_proxy() -> None:
    async with a_proxied_target() as (proxy, proxies):
        assert (await workflow_answer(proxies)).text == "reached"
        assert await page(proxies) == b"reached"
    assert proxy.requests == [f"GET http://{HOST}/step", f"GET http://{HOST}/page"]


async def test_keyless_searches_go_through_the_proxy() -> None:
    async with a_proxied_target() as (proxy, _):
        search = DuckDuckGoSearch(base_url=f"http://{HOST}", proxy=proxy.url)
        await search.search("x", max_results=1, timeout_s=30)
    assert [request.split("?")[0] for request in proxy.requests] == [f"POST http://{HOST}/html/"]


async def test_the_proxy_gets_its_credentials_and_the_target_does_not() -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.extend(request.headers)
        return web.Response(text="reached")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    places = {f"{HOST}:80": server.port or 0}
    async with ForwardProxy(places, credentials="ann:pass word".replace(" ", "")).open() as proxy:
        proxies = Proxies(http=proxy.url)
        assert await mcp_answer(proxies) == "reached"
        assert (await workflow_answer(proxies)).text == "reached"
        with pytest.raises(TransportFailedError) as refused:
            await mcp_answer(Proxies(http=proxy.url.replace("ann", "bob"), https=None), f"https://{HOST}/mcp")
    await server.close()
    assert len(proxy.requests) == 2
    assert not [name for name in seen if "proxy" in name.lower()]
    assert refused.value.fault.not_executed


async def test_a_target_of_no_proxy_is_reached_directly() -> None:
    async with a_target() as port, ForwardProxy({}).open() as proxy:
        proxies = Proxies(http=proxy.url, bypass=["example.org"])
        assert await model_answer(proxies, f"http://127.0.0.1:{port}/v1", guarded=False) == "hi"
        sessions = OutboundSessions(
            ssl_context=ssl.create_default_context, proxies=proxies, resolver=Names("127.0.0.1"), keepalive_s=5.0
        )
        session = await sessions.to("http", "a.example.org", port)
        async with session.get(f"http://a.example.org:{port}/") as response:
            assert await response.text() == "reached"
        await sessions.close()
    assert proxy.requests == []


INSIDE = ["http://10.0.0.5/mcp", "http://0x7f000001/mcp", "http://[::1]/mcp", "http://169.254.169.254/latest"]


@pytest.mark.parametrize("url", INSIDE)
async def test_an_address_inside_is_not_requested_through_the_proxy_either(url: str) -> None:
    async with a_proxied_target() as (proxy, proxies):
        with pytest.raises(TransportFailedError, match="not public"):
            await mcp_answer(proxies, url)
        with pytest.raises(ModelError, match="not public"):
            await model_answer(proxies, url)
        assert (await webhook_attempt(proxies, url)).failure is SendFailure.BLOCKED
        with pytest.raises(HttpCallFailed, match="not public"):
            await workflow_answer(proxies, url)
        with pytest.raises(NativeToolError, match="not public"):
            await page(proxies, url)
    assert proxy.requests == []


@pytest.mark.parametrize("addresses", [("10.0.0.5",), ("93.184.216.34", "10.0.0.5")])
async def test_a_name_that_resolves_here_to_an_address_inside_is_not_requested(addresses: tuple[str, ...]) -> None:
    async with a_proxied_target() as (proxy, proxies):
        names = Names(*addresses)
        with pytest.raises(TransportFailedError) as failed:
            await mcp_answer(proxies, resolver=names)
        assert failed.value.fault.for_model == f"The address of {HOST} is not public, so it is not requested."
        assert failed.value.fault.not_executed
        assert (await webhook_attempt(proxies, resolver=names)).failure is SendFailure.BLOCKED
        with pytest.raises(NativeToolError, match="not public"):
            await page(proxies, resolver=names)
    assert proxy.requests == []


async def test_a_name_is_looked_up_once_for_many_requests() -> None:
    async with a_proxied_target() as (proxy, proxies):
        for names in (Names("93.184.216.34"), Names()):
            assert await mcp_answer(proxies, resolver=names, requests=3) == "reached"
            assert names.asked == [HOST]
    assert len(proxy.requests) == 6


async def test_the_name_of_the_proxy_opens_no_way_to_its_network() -> None:
    # An exemption by name or address would let a user ask for other ports of the proxy's machine.
    async with a_target() as port, ForwardProxy({}).open() as proxy:
        with pytest.raises(TransportFailedError, match="not public"):
            await mcp_answer(Proxies(https=proxy.url), f"http://127.0.0.1:{port}/mcp")
        with pytest.raises(TransportFailedError, match="not public"):
            await mcp_answer(Proxies(https=proxy.url), f"http://proxy.test:{port}/mcp", resolver=Names("127.0.0.1"))
    assert proxy.requests == []


async def test_a_proxy_that_is_not_there_or_refuses_is_named_and_nothing_was_executed() -> None:
    async with ForwardProxy({}).open() as proxy:
        with pytest.raises(TransportFailedError, match="proxy") as refused:
            await mcp_answer(Proxies(https=proxy.url), f"https://{HOST}/mcp")
    with pytest.raises(TransportFailedError, match="proxy") as unreachable:
        await mcp_answer(Proxies(http=proxy.url))
    with pytest.raises(ModelError, match="through the proxy") as model:
        await model_answer(Proxies(http=proxy.url))
    assert proxy.requests == [f"CONNECT {HOST}:443"]
    assert refused.value.fault.not_executed
    assert unreachable.value.fault.not_executed
    assert (model.value.code, model.value.retryable) == ("model_unavailable", True)
    with pytest.raises(SearchError):
        await DuckDuckGoSearch(base_url=f"http://{HOST}", proxy=proxy.url).search("x", max_results=1, timeout_s=30)


def tls_of(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context for HOST, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, secret)
    return server, ssl.create_default_context(cafile=str(pem))


async def through_tunnels(folder: Path) -> None:
    server, trusted = tls_of(folder)
    async with (
        a_target(tls=server) as port,
        ForwardProxy({f"{HOST}:443": port}, credentials="ann:password").open() as proxy,
    ):
        proxies = Proxies(https=proxy.url)
        assert await mcp_answer(proxies, f"https://{HOST}/mcp", trusted=trusted, requests=2) == "reached"
        http = AiohttpProviders(
            OutboundSessions(ssl_context=lambda: trusted, egress=PUBLIC_ONLY, proxies=proxies, keepalive_s=5.0)
        )
        model = OpenAICompatibleModels(provider=a_provider(f"https://{HOST}/v1"), http=http)
        for _ in range(2):
            assert (await reply_of(model.stream(a_request("acme:m")))).text == "hi"
        await http.aclose()
        # The certificate of the target is not trusted here: that a tunnel is asked for is what can
        # be seen.
        assert (await webhook_attempt(proxies, f"https://{HOST}/hook")).failure is SendFailure.INSECURE
    # Each keeps its tunnel for the second request.
    assert proxy.requests == [f"CONNECT {HOST}:443"] * 3
    assert all(b"authorization: bearer" not in head.lower() for head in proxy.heads)


Run = Callable[[Coroutine[None, None, None]], None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_targets_behind_tls_are_reached_through_a_tunnel_that_serves_several_requests(run: Run, tmp_path: Path) -> None:
    run(through_tunnels(tmp_path))
