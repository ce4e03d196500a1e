// OpenAI's library for JavaScript over agents of Dragoman: URL KEY → what it was answered, as JSON on stdout.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function models() {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  return ids.sort();
}

async function chat() {
  const messages = [{ role: "user", content: "The weather?" }];
  const runner = client.chat.completions.runTools({
    model: "asks",
    stream: true,
    messages,
    tools: [{ type: "function", function: { name: "weather", parameters, parse: JSON.parse, function: ({ city }) => `sun in ${city}` } }],
  });
  return runner.finalContent();
}

async function responses() {
  const events = [];
  const stream = await client.responses.create({ model: "looks", input: "look", stream: true });
  for await (const event of stream) {
    events.push(event);
    if (event.type === "response.output_text.delta") break; // leaves the stream in the middle
  }
  const [first, last] = [events[0], events.at(-1)];
  const rest = await client.responses.retrieve(first.response.id, { stream: true, starting_after: last.sequence_number });
  for await (const event of rest) events.push(event);
  const numbers = events.map((event) => event.sequence_number);
  return { whole: numbers.every((number, index) => number === index), text: events.at(-1).response.output_text ?? events.at(-1).response.output.map((item) => item.type) };
}

async function failure() {
  try {
    await client.chat.completions.create({ model: "nothing", messages: [{ role: "user", content: "hello" }] });
  } catch (error) {
    return [error.constructor.name, error.status, error.code];
  }
}

process.stdout.write(JSON.stringify({ models: await models(), chat: await chat(), responses: await responses(), failure: await failure() }));
