// The official TypeScript client through the gateway: URL TOKEN TOOL ARGUMENTS → {tools, text}, as JSON on stdout.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, token, tool, args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const { tools } = await client.listTools();
const answer = await client.callTool({ name: tool, arguments: JSON.parse(args) });
await client.close();
process.stdout.write(JSON.stringify({ tools: tools.map((one) => one.name), text: answer.content[0].text }));
