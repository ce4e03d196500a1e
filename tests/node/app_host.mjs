// A page that hosts MCP Apps with the official client and AppBridge. `host.open(tool, arguments)` calls a tool, and renders its
// result by the app that the tool links to, in a frame on the origin of `sandbox.test`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  AppBridge,
  PostMessageTransport,
  RESOURCE_MIME_TYPE,
  getToolUiResourceUri,
  isToolVisibilityAppOnly,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const info = { name: "host", version: "1" };
const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } };
const client = new Client(info, { capabilities, versionNegotiation: { mode: window.negotiation ?? "auto" } });

async function open(name, args) {
  const uri = getToolUiResourceUri(host.tools.find((tool) => tool.name === name));
  const [app] = (await client.readResource({ uri })).contents;
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts allow-same-origin";
  frame.name = name;
  frame.src = "http://sandbox.test/";
  document.body.append(frame);
  const bridge = new AppBridge(client, info, { serverTools: {}, serverResources: {}, logging: {} });
  const initialized = new Promise((done) => bridge.addEventListener("initialized", done));
  bridge.addEventListener("sandboxready", () => bridge.sendSandboxResourceReady({ html: app.text }));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  await initialized;
  await bridge.sendToolInput({ arguments: args });
  const result = await client.callTool({ name, arguments: args });
  await bridge.sendToolResult(result);
  return { uri, read: app.uri, type: app.mimeType, app: bridge.getAppVersion(), isError: result.isError ?? false };
}

await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.href)));
const { tools } = await client.listTools();
const forModels = tools.filter((tool) => !isToolVisibilityAppOnly(tool)).map((tool) => tool.name);
window.host = { client, open, tools, forModels, extensions: client.getServerCapabilities().extensions };
