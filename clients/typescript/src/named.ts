/** Agents and MCP servers: objects with a name. */

import type { Dragoman } from "./client.js";
import { NotFound } from "./errors.js";
import type { Shape } from "./shapes.js";

/** Objects with a name: read, created, changed and deleted alike. */
class Named<View, Body, Changes, Saved = View> {
  constructor(
    readonly client: Dragoman,
    readonly path: string,
    readonly nameOf: (body: Body) => string,
  ) {}

  create(body: Body): Promise<Saved> {
    return this.client.request("POST", this.path, { body });
  }

  get(name: string): Promise<View> {
    return this.client.request("GET", `${this.path}/${encodeURIComponent(name)}`);
  }

  /** Change the given fields. */
  update(name: string, changes: Changes): Promise<Saved> {
    return this.client.request("PATCH", `${this.path}/${encodeURIComponent(name)}`, { body: changes });
  }

  /** Create it, or change the one of that name. */
  async apply(body: Body): Promise<Saved> {
    const name = this.nameOf(body);
    try {
      await this.get(name);
    } catch (error) {
      if (error instanceof NotFound) return this.create(body);
      throw error;
    }
    return this.update(name, body as unknown as Changes);
  }

  delete(name: string): Promise<void> {
    return this.client.request("DELETE", `${this.path}/${encodeURIComponent(name)}`);
  }

  list(): AsyncGenerator<View, void, void> {
    return this.client.pages(this.path);
  }
}

type SavedAgent = Shape<"SavedAgentView">;

export class Agents extends Named<Shape<"AgentView">, Shape<"CreateAgentBody">, Shape<"UpdateAgentBody">, SavedAgent> {
  constructor(client: Dragoman) {
    super(client, "/agents", (body) => body.name);
  }
}

export class Servers extends Named<Shape<"McpServerView">, Shape<"McpServerBody">, Shape<"UpdateMcpServerBody">> {
  constructor(client: Dragoman) {
    super(client, "/mcp-servers", (body) => body.slug);
  }

  /** Connect to the server and list its tools. */
  test(server: string): Promise<Shape<"TestResultView">> {
    return this.client.request("POST", `/mcp-servers/${encodeURIComponent(server)}/test`);
  }
}
