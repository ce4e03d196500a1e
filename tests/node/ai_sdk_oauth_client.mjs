// The MCP client of the AI SDK through the gateway, without a token: URL TOOL ARGUMENTS. It prints the address for the
// person's browser, reads the address to which the browser came back, and prints {text} as JSON.
import { createInterface } from "node:readline/promises";
import { auth, createMCPClient } from "@ai-sdk/mcp";

const [url, tool, args] = process.argv.slice(2);
const stored = {};
const authProvider = {
  redirectUrl: "http://127.0.0.1:33421/callback",
  clientMetadata: { client_name: "AI SDK", redirect_uris: ["http://127.0.0.1:33421/callback"] },
  state: () => "state-of-the-ai-sdk",
  saveState: (state) => { stored.state = state; },
  storedState: () => stored.state,
  clientInformation: () => stored.client,
  saveClientInformation: (client) => { stored.client = client; },
  isClientInformationDynamicallyRegistered: () => true,
  authorizationServerInformation: () => stored.server,
  saveAuthorizationServerInformation: (server) => { stored.server = server; },
  tokens: () => stored.tokens,
  saveTokens: (tokens) => { stored.tokens = tokens; },
  redirectToAuthorization: (to) => { console.log(to.href); },
  saveCodeVerifier: (verifier) => { stored.verifier = verifier; },
  codeVerifier: () => stored.verifier,
};

if ((await auth(authProvider, { serverUrl: url })) !== "REDIRECT") throw new Error("no authorization was asked for");
const lines = createInterface({ input: process.stdin });
const back = new URL((await lines[Symbol.asyncIterator]().next()).value).searchParams;
lines.close();
const answer = { serverUrl: url, authorizationCode: back.get("code"), callbackState: back.get("state"), callbackIssuer: back.get("iss") };
if ((await auth(authProvider, answer)) !== "AUTHORIZED") throw new Error("not authorized");
const client = await createMCPClient({ transport: { type: "http", url, authProvider } });
const tools = await client.tools();
const result = await tools[tool].execute(JSON.parse(args), { messages: [], toolCallId: "call" });
await client.close();
console.log(JSON.stringify({ text: result.content[0].text }));
