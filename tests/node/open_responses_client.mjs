// The Open Responses provider of the AI SDK over agents of Dragoman: URL KEY → what it was answered, as JSON on stdout.
import { createOpenResponses } from "@ai-sdk/open-responses";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

const [url, apiKey] = process.argv.slice(2);
const agent = createOpenResponses({ name: "dragoman", url: `${url}/responses`, apiKey });
const city = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
const weather = tool({ description: "The weather.", inputSchema: city, execute: async ({ city }) => `sun in ${city}` });

async function told() {
  const { text, usage, finishReason } = await generateText({ model: agent("told"), prompt: "hello", maxRetries: 0 });
  return { text, finishReason, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
}

async function streamed() {
  const kinds = new Set();
  const result = streamText({ model: agent("looks"), prompt: "look", maxRetries: 0 });
  for await (const part of result.fullStream) kinds.add(part.type);
  return { text: await result.text, failed: kinds.has("error"), finishReason: await result.finishReason };
}

async function called() {
  const options = { tools: { weather }, stopWhen: stepCountIs(3), prompt: "weather?", maxRetries: 0 };
  const { text, steps } = await generateText({ model: agent("asks"), ...options });
  return { text, steps: steps.length };
}

async function shaped() {
  const { output } = await generateText({ model: agent("shaped"), prompt: "Where?", output: Output.object({ schema: city }), maxRetries: 0 });
  return output;
}

process.stdout.write(JSON.stringify({ told: await told(), streamed: await streamed(), called: await called(), shaped: await shaped() }));
