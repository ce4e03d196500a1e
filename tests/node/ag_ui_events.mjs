// Events of AG-UI as JSON lines on stdin, held to the schemas of `@ag-ui/core`: their number, and what is wrong, as JSON.
import { EventSchema } from "@ag-ui/core/schemas";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const events = Buffer.concat(chunks).toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const wrong = events.map((event) => [event.type, EventSchema.safeParse(event).error?.issues]).filter(([, issues]) => issues);
process.stdout.write(JSON.stringify({ events: events.length, wrong }));
