// Asks the agent "guide" with a state by AG-UI's own client; when the connection is lost, another client reads the thread
// again. Prints the states of both as JSON lines.
import { HttpAgent } from "@ag-ui/client";

const url = `${process.env.DRAGOMAN_URL}/ag-ui/v1/guide`;
const headers = { authorization: `Bearer ${process.env.DRAGOMAN_API_KEY}` };
process.on("unhandledRejection", () => {}); // the client reports a broken connection twice

class Agent extends HttpAgent {
  connect(input) {
    return new HttpAgent({ url: `${url}/connect`, headers }).run(input);
  }
}

const first = new Agent({ url, headers, initialState: { items: [] } });
first.addMessage({ id: "m1", role: "user", content: "tea" });
await first.runAgent().catch(() => {});
const second = new Agent({ url, headers, threadId: first.threadId });
for (;;) {
  await new Promise((resume) => setTimeout(resume, 1000));
  try {
    await second.connectAgent();
    break;
  } catch (error) {
    if (error.status) throw error;
  }
}
for (const { state } of [first, second]) console.log(JSON.stringify(state));
