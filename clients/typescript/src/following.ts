/** Events of runs of agents and of workflows. */

import type { Dragoman } from "./client.js";

const OPEN = new Set<unknown>(["queued", "in_progress", "requires_action"]);

type Waiting = { id?: string; node_id?: string };
type Item = { type: string; seq?: number; status?: string; pending?: Waiting[] };
type Followed = { client: Dragoman; view: { status: string; pending: Waiting[] }; refresh(): Promise<unknown> };

/** A stream ends where the run waits. It is opened again if the run has moved on since. `seen` is the last event given. */
export async function* followed<T extends Item>(run: Followed, path: string, seen: { seq: number }) {
  for (let waitsFor: unknown[] = []; ; ) {
    const began = seen.seq;
    let ended: unknown;
    for await (const event of run.client.follow<T>(path, seen.seq)) {
      ended = event.status;
      if (event.type === "end") break;
      seen.seq = event.seq ?? seen.seq;
      if (event.type.endsWith(".requires_action")) {
        run.view = { ...run.view, status: "requires_action", pending: event.pending ?? [] };
        waitsFor = run.view.pending.map(idOf);
      }
      yield event as Exclude<T, { type: "end" }>;
    }
    await run.refresh();
    const { status, pending } = run.view;
    const nothingNew = seen.seq === began || pending.every((each) => waitsFor.includes(idOf(each)));
    if (!OPEN.has(ended) || (status === "requires_action" && nothingNew)) return;
  }
}

const idOf = (waiting: Waiting) => waiting.node_id ?? waiting.id;
