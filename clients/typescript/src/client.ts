/** The client: requests, retries, pages, streams, and the objects of the API. */

import { apiError, ConnectionLost, DragomanError, LimitReached, Unavailable } from "./errors.js";
import { followed } from "./following.js";
import { frames, ownKey, pause, sleep } from "./frames.js";
import { Agents, Servers } from "./named.js";
import type { RunEvent, RunStatus, Shape } from "./shapes.js";
import { WorkflowRuns } from "./workflows.js";

const BUSY = new Set([429, 502, 503, 504]);
const LONGEST_RETRY_AFTER_MS = 30_000;
const ONE_WAIT_S = 30;
const UNFINISHED = new Set<RunStatus>(["queued", "in_progress"]);
const BASE = "http://127.0.0.1:8321";

export interface Options {
  /** Address of the service. Default: DRAGOMAN_URL. */
  url?: string;
  /** An API key: `dgm_…`. Default: DRAGOMAN_API_KEY. */
  apiKey?: string;
  /** How often what is safe to repeat is repeated. Default: 6. */
  retries?: number;
  /** Milliseconds for one response. Default: 60 000. */
  timeoutMs?: number;
}

export interface Request {
  body?: unknown;
  query?: Record<string, string | number | boolean | undefined | null>;
  headers?: Record<string, string>;
  /** Sent as it is, in place of `body`. */
  content?: Blob | ArrayBuffer | ArrayBufferView | string;
  /** Whether a second request changes nothing more. Default: for GET. */
  repeatable?: boolean;
}

/**
 * A connection to a service.
 *
 * - What is safe to repeat is repeated when the connection breaks or the service is busy: reads, and starts of runs, which
 *   carry an idempotency key.
 * - Throws ApiError (by status: NotFound, Conflict, …) for what the service rejects, ConnectionLost after retries.
 */
export class Dragoman {
  readonly agents = new Agents(this);
  readonly servers = new Servers(this);
  readonly threads = new Threads(this);
  readonly runs = new Runs(this);
  readonly workflowRuns = new WorkflowRuns(this);
  readonly approvals = new Approvals(this);
  readonly #base: string;
  readonly #key: string;
  readonly #retries: number;
  readonly #timeoutMs: number;

  constructor(options: Options = {}) {
    const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
    this.#base = `${(options.url ?? env["DRAGOMAN_URL"] ?? BASE).replace(/\/+$/, "")}/v1`;
    this.#key = options.apiKey ?? env["DRAGOMAN_API_KEY"] ?? "";
    this.#retries = options.retries ?? 6;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    if (this.#key === "") throw new DragomanError("There is no API key: give `apiKey`, or set DRAGOMAN_API_KEY.");
  }

  /** Any operation of the HTTP API, by its path below `/v1`: the decoded JSON of the response, or undefined. */
  async request<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const response = await this.#send(method, path, request);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** The content of a source. */
  async download(sourceId: string): Promise<Blob> {
    return (await this.#send("GET", `/sources/${sourceId}/content`, {})).blob();
  }

  /** The entries of a list, page by page as they are needed. */
  async *pages<T>(path: string, query: Request["query"] = {}): AsyncGenerator<T, void, void> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { data: T[]; next_cursor: string | null } = await this.request("GET", path, {
        query: { ...query, cursor },
      });
      yield* page.data;
      cursor = page.next_cursor;
    }
  }

  /**
   * The data of every event of a stream after `after`, once and in order, then `end`. A stream that breaks is opened again
   * after its last event. Throws ConnectionLost when that fails too often in a row.
   */
  async *follow<T extends { type: string; seq?: number }>(path: string, after: number): AsyncGenerator<T, void, void> {
    for (let failures = 0; ; failures++) {
      let reason: unknown = "it ended early";
      const abort = new AbortController();
      try {
        const headers = { ...this.#headers(), "Last-Event-ID": String(after) };
        const response = await fetch(`${this.#base}${path}`, { headers, signal: abort.signal });
        if (!response.ok) throw await apiError(response);
        for await (const event of frames<T>(response, abort)) {
          if (event.type !== "end" && (event.seq ?? 0) <= after) continue;
          after = event.seq ?? after;
          failures = -1;
          yield event;
          if (event.type === "end") return;
        }
      } catch (error) {
        const passes = error instanceof Unavailable || error instanceof LimitReached;
        if (error instanceof DragomanError && !passes) throw error;
        reason = error;
      }
      if (failures >= this.#retries) throw new ConnectionLost(`The stream ${path} broke: ${reason}`, { cause: reason });
      await sleep(pause(Math.max(failures, 0)));
    }
  }

  async #send(method: string, path: string, request: Request): Promise<Response> {
    const url = new URL(`${this.#base}${path}`);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const json: Record<string, string> = request.body === undefined ? {} : { "Content-Type": "application/json" };
    const headers = { ...this.#headers(), ...json, ...request.headers };
    const body = request.body === undefined ? (request.content as BodyInit) : JSON.stringify(request.body);
    const repeatable = request.repeatable ?? method === "GET";
    for (let attempt = 0; ; attempt++) {
      const last = !repeatable || attempt >= this.#retries;
      let waitMs = pause(attempt);
      try {
        const response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(this.#timeoutMs) });
        if (response.ok) return response;
        waitMs = Math.max(waitMs, 1_000 * Number(response.headers.get("Retry-After") ?? 0) || 0);
        if (last || !BUSY.has(response.status) || waitMs > LONGEST_RETRY_AFTER_MS) throw await apiError(response);
      } catch (error) {
        if (error instanceof DragomanError) throw error;
        if (last) throw new ConnectionLost(`${method} ${path}: ${error}`, { cause: error });
      }
      await sleep(waitMs);
    }
  }

  #headers(): Record<string, string> {
    return { Authorization: `Bearer ${this.#key}` };
  }
}

/** A run as it was last seen. `view` is the whole of it, `messages` are those it wrote (after `wait`). */
export class Run {
  messages: Shape<"MessageView">[] = [];
  readonly #seen = { seq: 0 };

  constructor(
    readonly client: Dragoman,
    public view: Shape<"RunView">,
  ) {}

  get id(): string {
    return this.view.id;
  }

  get status(): RunStatus {
    return this.view.status;
  }

  /** Text of the last reply. */
  get output(): string | null {
    return this.view.output;
  }

  /** The tool calls that the run waits for. */
  get pending(): Call[] {
    return this.view.pending.map((call) => new Call(this, call));
  }

  /** Read the run again. */
  async refresh(): Promise<this> {
    this.view = await this.client.request("GET", `/runs/${this.id}`);
    return this;
  }

  /** Until the run has ended or requires action, or `timeoutS` is over: see `status`. */
  async wait(timeoutS = Infinity): Promise<this> {
    const endsAt = Date.now() + timeoutS * 1_000;
    for (;;) {
      const timeout_s = Math.max(0, Math.min(ONE_WAIT_S, (endsAt - Date.now()) / 1_000));
      const seen: Shape<"RunWithMessagesView"> = await this.client.request("GET", `/runs/${this.id}/wait`, {
        query: { timeout_s },
      });
      this.view = seen.run;
      this.messages = seen.messages;
      if (!UNFINISHED.has(this.status) || Date.now() >= endsAt) return this;
    }
  }

  /**
   * The events of the run, each exactly once, until it has ended or waits for something that is not settled in the loop.
   * Reconnects by itself. A later call continues after the last event, or after the event numbered `after`.
   */
  stream(after?: number): AsyncGenerator<RunEvent, void, void> {
    this.#seen.seq = after ?? this.#seen.seq;
    return followed<Shape<"RunStreamItem">>(this, `/runs/${this.id}/stream`, this.#seen);
  }

  /** The run that continues this failed one, from its last stored step. */
  async retry(): Promise<Run> {
    const headers = { "Idempotency-Key": ownKey() };
    return new Run(this.client, await this.client.request("POST", `/runs/${this.id}/retry`, { headers, repeatable: true }));
  }

  /** Ask the run to stop. */
  async cancel(): Promise<this> {
    this.view = await this.client.request("POST", `/runs/${this.id}/cancel`, { repeatable: true });
    return this;
  }

  /** Give results and decisions for several pending calls at once. */
  async resume(body: Shape<"ResumeRunBody">): Promise<this> {
    this.view = await this.client.request("POST", `/runs/${this.id}/resume`, { body });
    return this;
  }
}

/** A pending tool call: `approve` or `deny` it, give its `result` (client tools), or `answer` its server's question. */
export class Call {
  constructor(
    readonly run: Run,
    readonly view: Shape<"ToolUseView">,
  ) {}

  get id(): string {
    return this.view.id;
  }

  get name(): string {
    return this.view.name;
  }

  get params(): Record<string, unknown> {
    return this.view.params;
  }

  /** Let the call be executed, with other arguments if they are given. */
  approve(given: { arguments?: Record<string, unknown>; reason?: string } = {}): Promise<Shape<"ApprovalView">> {
    return this.#decide({ decision: "approve", ...given });
  }

  /** The model gets the reason instead of a result. */
  deny(reason?: string): Promise<Shape<"ApprovalView">> {
    return this.#decide({ decision: "deny", reason });
  }

  /** The result of a client tool. */
  result(result: unknown, isError = false): Promise<Run> {
    return this.run.resume({ tool_results: [{ tool_call_id: this.id, result, is_error: isError }] });
  }

  /** Accept the question of the call's MCP server. */
  answer(content: Record<string, unknown>): Promise<Run> {
    return this.result({ action: "accept", content });
  }

  /** Decline the question of the call's MCP server. */
  decline(): Promise<Run> {
    return this.result({ action: "decline" });
  }

  async #decide(body: Shape<"DecisionBody">): Promise<Shape<"ApprovalView">> {
    const approvalId = this.view.approval_id;
    if (approvalId === undefined) {
      throw new DragomanError(`The call of ${this.name} waits for a result, not for an approval.`);
    }
    return this.run.client.approvals.decide(approvalId, body);
  }
}

/** A conversation: its messages, files and runs. */
export class Thread {
  constructor(
    readonly client: Dragoman,
    readonly view: Shape<"ThreadView">,
  ) {}

  get id(): string {
    return this.view.id;
  }

  /** Start a run on the thread. */
  start(body: Shape<"RunBody">): Promise<Run> {
    return this.client.runs.start({ ...body, thread_id: this.id });
  }

  /** Oldest first. */
  messages(): AsyncGenerator<Shape<"MessageView">, void, void> {
    return this.client.pages(`/threads/${this.id}/messages`);
  }

  /** Append a message without starting a run. */
  append(content: string, role: "user" | "assistant" = "user"): Promise<Shape<"MessageView">> {
    return this.client.request("POST", `/threads/${this.id}/messages`, { body: { role, content } });
  }

  /** Upload a file under a name. */
  upload(name: string, content: Blob | ArrayBuffer | ArrayBufferView | string): Promise<Shape<"SourceView">> {
    const headers = { "Content-Type": "application/octet-stream" };
    return this.client.request("POST", `/threads/${this.id}/sources`, { query: { name }, content, headers });
  }

  /** Newest first. */
  sources(): AsyncGenerator<Shape<"SourceView">, void, void> {
    return this.client.pages(`/threads/${this.id}/sources`);
  }

  delete(): Promise<void> {
    return this.client.request("DELETE", `/threads/${this.id}`);
  }
}

class Runs {
  constructor(readonly client: Dragoman) {}

  /**
   * Start a run. The same `idempotencyKey` with the same body gives the same run for 24 hours; by default each call has
   * another key, so that a broken connection starts no second run.
   */
  async start(body: Shape<"RunBody">, idempotencyKey: string = ownKey()): Promise<Run> {
    const headers = { "Idempotency-Key": idempotencyKey };
    return new Run(this.client, await this.client.request("POST", "/runs", { body, headers, repeatable: true }));
  }

  async get(runId: string): Promise<Run> {
    return new Run(this.client, await this.client.request("GET", `/runs/${runId}`));
  }

  /** Newest first. */
  async *list(wanted: { thread_id?: string; agent_id?: string; status?: RunStatus } = {}): AsyncGenerator<Run, void, void> {
    for await (const view of this.client.pages<Shape<"RunView">>("/runs", wanted)) yield new Run(this.client, view);
  }
}

class Threads {
  constructor(readonly client: Dragoman) {}

  async create(metadata: Record<string, unknown> = {}): Promise<Thread> {
    return new Thread(this.client, await this.client.request("POST", "/threads", { body: { metadata } }));
  }

  async get(threadId: string): Promise<Thread> {
    return new Thread(this.client, await this.client.request("GET", `/threads/${threadId}`));
  }

  async *list(): AsyncGenerator<Thread, void, void> {
    for await (const view of this.client.pages<Shape<"ThreadView">>("/threads")) yield new Thread(this.client, view);
  }
}

class Approvals {
  constructor(readonly client: Dragoman) {}

  /** Approve or deny a call, once. */
  decide(approvalId: string, body: Shape<"DecisionBody">): Promise<Shape<"ApprovalView">> {
    return this.client.request("POST", `/approvals/${approvalId}`, { body });
  }

  /** Newest first. `{ state: "pending" }` lists those that require a decision. */
  list(wanted: { state?: Shape<"ApprovalState">; run_id?: string } = {}): AsyncGenerator<Shape<"ApprovalView">, void> {
    return this.client.pages("/approvals", wanted);
  }
}
