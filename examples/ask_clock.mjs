// The client for TypeScript: ask an agent, follow its run, approve its calls. See the page about clients.
import { Dragoman } from "dragoman-client";

const dragoman = new Dragoman(); // DRAGOMAN_URL, DRAGOMAN_API_KEY
await dragoman.servers.apply({ slug: "time", kind: "custom", command: "python", args: ["-m", "mcp_server_time"] });
await dragoman.agents.apply({
  name: "clock",
  model: "scripted:time.yaml", // or "openai:gpt-5-mini", where the service has a key
  mcp_servers: ["time"],
  tool_policies: { "mcp__time__*": { decision: "require_approval" } },
});
const run = await dragoman.runs.start({ agent: "clock", input: "What time is it in Lisbon?" });
for await (const event of run.stream()) {
  if (event.type === "message.delta") process.stdout.write(event.text);
  if (event.type === "run.requires_action") {
    for (const call of run.pending) {
      console.log(`\n? ${call.name} ${JSON.stringify(call.params)}`);
      await call.approve({ reason: "It only looks at a clock." });
    }
  }
}
console.log(`\n${run.id} ${run.status}`);
