// Asks the agent "guide" over AG-UI: prints what it says and does, lets you decide about calls, and reads the run again
// when the connection is lost.
//
//     node ag_ui.mjs "What can you do?"
import { HttpAgent } from "@ag-ui/client";
import { createInterface } from "node:readline/promises";

const url = `${process.env.DRAGOMAN_URL}/ag-ui/v1/guide`;
const headers = { authorization: `Bearer ${process.env.DRAGOMAN_API_KEY}` };

class Agent extends HttpAgent {
  connect(input) {
    return new HttpAgent({ url: `${url}/connect`, headers }).run(input);
  }
}

process.on("unhandledRejection", () => {}); // the client reports a broken connection twice; `run` has caught it
const agent = new Agent({ url, headers });
const failed = { onRunErrorEvent: ({ event }) => console.error(event.code, event.message) };

async function run(parameters) {
  try {
    await agent.runAgent(parameters, failed);
  } catch (error) {
    if (error.status) throw error; // refused
    await reconnect();
  }
}

async function reconnect() {
  for (;;) {
    await new Promise((resume) => setTimeout(resume, 1000));
    try {
      agent.pendingInterrupts = []; // what waits is said again
      return await agent.connectAgent({}, failed);
    } catch (error) {
      if (error.status) throw error;
    }
  }
}

async function decided({ id, message, reason, toolCallId }) {
  if (reason !== "tool_call") return { interruptId: id, status: "cancelled" }; // a question: its form is not shown here
  const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []);
  const { name, arguments: parameters } = calls.find((call) => call.id === toolCallId).function;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(`${message}\n${name} ${parameters}: yes or no? `);
  terminal.close();
  return { interruptId: id, status: "resolved", payload: { approved: answer === "yes" } };
}

agent.addMessage({ id: crypto.randomUUID(), role: "user", content: process.argv[2] });
await run();
while (agent.pendingInterrupts.length) {
  const resume = [];
  for (const interrupt of agent.pendingInterrupts) resume.push(await decided(interrupt));
  await run({ resume });
}
for (const { role, content } of agent.messages) if (content) console.log(`${role}: ${content}`);
