// The official TypeScript client through the gateway, without a token: URL TOOL ARGUMENTS. It prints the address for the
// person's browser, reads the address to which the browser came back, and prints {text, refreshed} as JSON.
import { createInterface } from "node:readline/promises";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const [url, tool, args] = process.argv.slice(2);
const stored = {};
const authProvider = {
  redirectUrl: "http://127.0.0.1:33419/callback",
  clientMetadata: { client_name: "TypeScript client", redirect_uris: ["http://127.0.0.1:33419/callback"] },
  state: () => "state-of-typescript",
  clientInformation: () => stored.client,
  saveClientInformation: (client) => { stored.client = client; },
  tokens: () => stored.tokens,
  saveTokens: (tokens) => { stored.tokens = tokens; },
  redirectToAuthorization: (to) => { console.log(to.href); },
  saveCodeVerifier: (verifier) => { stored.verifier = verifier; },
  codeVerifier: () => stored.verifier,
};
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider });

async function call() {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport());
  const answer = await client.callTool({ name: tool, arguments: JSON.parse(args) });
  await client.close();
  return answer.content[0].text;
}

const first = transport();
try {
  await new Client({ name: "test", version: "1" }).connect(first);
  throw new Error("connected without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const lines = createInterface({ input: process.stdin });
const { searchParams } = new URL((await lines[Symbol.asyncIterator]().next()).value);
lines.close();
if (searchParams.get("state") !== "state-of-typescript") throw new Error("another state");
await first.finishAuth(searchParams);
const text = await call();
// An access token that no longer works is renewed without the person.
const used = stored.tokens.refresh_token;
stored.tokens = { ...stored.tokens, access_token: "dgs_expired" };
const again = await call();
console.log(JSON.stringify({ text, again, refreshed: stored.tokens.refresh_token !== used }));
