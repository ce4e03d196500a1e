// JSON lines [document, operation, result] on stdin: which results the library of AG-UI's client does not have, as JSON.
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

const { applyPatch } = createRequire(import.meta.url)("fast-json-patch");
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const cases = Buffer.concat(chunks).toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const applied = (document, operation) => {
  try {
    return applyPatch(document, [operation], true, false).newDocument;
  } catch (error) {
    return error.message;
  }
};
const other = cases.filter(([document, operation, result]) => !isDeepStrictEqual(applied(document, operation), result));
process.stdout.write(JSON.stringify({ patches: cases.length, other }));
