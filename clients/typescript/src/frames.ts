/** Server-sent events of a response; and how long to wait between attempts. */

/** A stream that is silent for so long is broken: the service sends a comment every 15 seconds. */
const HEARTBEATS_MISSED_MS = 60_000;

/** The data of each event of a response. A cut event is not delivered: the service sends it again after `Last-Event-ID`. */
export async function* frames<T>(response: Response, abort: AbortController): AsyncGenerator<T, void, void> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let silence: ReturnType<typeof setTimeout> | undefined;
  try {
    for (;;) {
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), HEARTBEATS_MISSED_MS);
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const data = part
          .split("\n")
          .filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).replace(/^ /, ""));
        if (data.length > 0) yield JSON.parse(data.join("\n")) as T;
      }
    }
  } finally {
    clearTimeout(silence);
    abort.abort();
  }
}

/** Milliseconds before attempt `number`: 250, 500, 1000, … at most 8000. */
export function pause(number: number): number {
  return Math.min(250 * 2 ** number, 8_000);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Not `crypto.randomUUID`: pages without HTTPS and Node.js 18 do not have it, and this key is no secret. */
export function ownKey(): string {
  return [Date.now(), Math.random(), Math.random()].map((part) => part.toString(36).replace("0.", "")).join("-");
}
