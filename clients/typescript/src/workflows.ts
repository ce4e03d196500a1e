/** Runs of workflows. */

import type { Dragoman } from "./client.js";
import { followed } from "./following.js";
import { ownKey } from "./frames.js";
import type { Shape, WorkflowEvent, WorkflowRunStatus } from "./shapes.js";

type Outline = Shape<"WorkflowRunOutlineView">;

/** A run of a workflow as it was last seen. `view` is the whole of it, with its nodes. */
export class WorkflowRun {
  readonly #seen = { seq: 0 };

  constructor(
    readonly client: Dragoman,
    public view: Shape<"WorkflowRunView">,
  ) {}

  get id(): string {
    return this.view.id;
  }

  get status(): WorkflowRunStatus {
    return this.view.status;
  }

  /** Output of the graph's only sink; with several sinks, an object by node id. */
  get output(): unknown {
    return this.view.output;
  }

  /** The nodes that wait for people. */
  get pending(): Shape<"PendingView">[] {
    return this.view.pending;
  }

  /** Read the run again. */
  async refresh(): Promise<this> {
    this.view = await this.client.request("GET", `/workflow-runs/${this.id}`);
    return this;
  }

  /** Until the run has ended or waits for people: see `status`. */
  async wait(): Promise<this> {
    const { seq } = this.#seen;
    for await (const _ of this.stream());
    this.#seen.seq = seq;
    return this;
  }

  /** The events of the run, as for runs of agents. */
  stream(after?: number): AsyncGenerator<WorkflowEvent, void, void> {
    this.#seen.seq = after ?? this.#seen.seq;
    return followed<Shape<"WorkflowStreamItem">>(this, `/workflow-runs/${this.id}/stream`, this.#seen);
  }

  /** Ask the run, and the runs of its agents, to stop. */
  async cancel(): Promise<this> {
    this.view = await this.client.request("POST", `/workflow-runs/${this.id}/cancel`, { repeatable: true });
    return this;
  }

  /** The answer of a person to a node that waits. */
  answer(nodeId: string, answer: unknown): Promise<this> {
    return this.resume({ answers: [{ node_id: nodeId, answer }] });
  }

  /** Give answers to several nodes, or results and decisions to the run of an agent node. */
  async resume(body: Shape<"ResumeWorkflowRunBody">): Promise<this> {
    this.view = await this.client.request("POST", `/workflow-runs/${this.id}/resume`, { body });
    return this;
  }
}

export class WorkflowRuns {
  constructor(readonly client: Dragoman) {}

  /** Start a run of a workflow, by its name or id, with any JSON value as input. Keys are as for runs of agents. */
  async start(workflow: string, input: unknown = null, idempotencyKey: string = ownKey()): Promise<WorkflowRun> {
    const path = `/workflows/${encodeURIComponent(workflow)}/runs`;
    const request = { body: { input }, headers: { "Idempotency-Key": idempotencyKey }, repeatable: true };
    return new WorkflowRun(this.client, await this.client.request("POST", path, request));
  }

  async get(runId: string): Promise<WorkflowRun> {
    return new WorkflowRun(this.client, await this.client.request("GET", `/workflow-runs/${runId}`));
  }

  /** Newest first. */
  list(wanted: { workflow_id?: string; status?: WorkflowRunStatus } = {}): AsyncGenerator<Outline, void, void> {
    return this.client.pages("/workflow-runs", wanted);
  }
}
