// What the tests of the TypeScript client do with it: `node typescript_client.mjs DIST URL KEY STORY`, which prints JSON.

const [, , dist, url, apiKey, story] = process.argv;
const client = await import(dist);
const dragoman = new client.Dragoman({ url, apiKey });

async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return { name: error.name, status: error.status, code: error.code, errors: error.errors, known: error instanceof client.DragomanError };
  }
  return null;
}

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

const stories = {
  async streams() {
    const run = await dragoman.runs.start({ agent: "teller", input: "Go." });
    const events = [];
    for await (const event of run.stream()) {
      events.push(event);
      if (event.type === "run.requires_action") {
        for (const call of run.pending) await call.approve({ reason: "Fine." });
      }
    }
    return { id: run.id, status: run.status, events };
  },

  async pauses() {
    const run = await dragoman.runs.start({ agent: "teller", input: "Go." });
    const first = await all(run.stream());
    const waits = run.status;
    const [yes, no] = run.pending;
    await yes.approve({ arguments: { text: "three" } });
    await no.deny("Not that.");
    const rest = await all(run.stream());
    const again = await failure(no.approve());
    const states = (await all(dragoman.approvals.list({ run_id: run.id }))).map((approval) => approval.state).sort();
    return { id: run.id, waits, status: run.status, events: [...first, ...rest], again, states };
  },

  async letters() {
    const run = await (await dragoman.runs.start({ agent: "secretary", input: "Write to Ada." })).wait();
    const [call] = run.pending;
    const asked = { status: run.status, name: call.name, params: call.params };
    const refused = await failure(call.approve());
    await call.result("sent");
    await run.wait();
    return { asked, refused, status: run.status, output: run.output, roles: run.messages.map((message) => message.role) };
  },

  async lost() {
    const thread = await dragoman.threads.create();
    const run = await (await thread.start({ agent: "secretary", input: "Write to Ada." })).refresh();
    const runs = (await all(dragoman.runs.list({ thread_id: thread.id }))).map((each) => each.id);
    return { id: run.id, runs };
  },

  async files() {
    const thread = await dragoman.threads.create({ ticket: "T-7" });
    const source = await thread.upload("bees.md", "# Bees\nThey hum.\n");
    const other = await thread.upload("numbers.csv", new TextEncoder().encode("1,2\n"));
    const listed = (await all(thread.sources())).map((each) => each.id);
    const text = await (await dragoman.download(source.id)).text();
    for (let number = 0; number < 7; number++) await thread.append(`message ${number}`);
    const messages = await all(dragoman.pages(`/threads/${thread.id}/messages`, { limit: 3 }));
    await thread.delete();
    return {
      source,
      order: [other.id, source.id],
      listed,
      text,
      metadata: thread.view.metadata,
      texts: messages.map((message) => message.content[0].text),
      deleted: await failure(dragoman.threads.get(thread.id)),
    };
  },

  async named() {
    const model = (await dragoman.agents.get("teller")).model;
    const first = await dragoman.agents.apply({ name: "d e", model });
    const second = await dragoman.agents.apply({ name: "d e", model, instructions: "Be brief." });
    await dragoman.agents.delete("d e");
    const servers = (await all(dragoman.servers.list())).map((server) => server.slug);
    return { versions: [first.version, second.version], servers, tested: (await dragoman.servers.test("watched")).ok };
  },

  async workflows() {
    const run = await dragoman.workflowRuns.start("review", { text: "Publish" });
    const events = [];
    const asked = [];
    for await (const event of run.stream()) {
      events.push(event.type);
      if (event.type === "workflow.requires_action") {
        asked.push(...run.pending.map((node) => node.node_id));
        await run.answer("person", true);
      }
    }
    const again = (await all(run.stream(2))).map((event) => event.type);
    const other = await (await dragoman.workflowRuns.start("review", { text: "No" })).wait();
    const waits = other.status;
    const refused = await failure(other.answer("person", "perhaps"));
    const cancelled = (await (await (await dragoman.workflowRuns.get(other.id)).cancel()).wait()).status;
    const workflow_id = run.view.workflow_id;
    const listed = (await all(dragoman.workflowRuns.list({ workflow_id }))).map((each) => each.id);
    return { status: run.status, output: run.output, events, asked, again, waits, refused, cancelled, listed, ids: [other.id, run.id] };
  },

  async errors() {
    const nobody = new client.Dragoman({ url, apiKey: "dgm_wrong" });
    const nowhere = new client.Dragoman({ url: "http://127.0.0.1:9", apiKey, retries: 1 });
    return {
      missing: await failure(dragoman.runs.get("run_none")),
      invalid: await failure(dragoman.request("POST", "/runs", { body: { agent: "teller", inputs: "Go." } })),
      stranger: await failure(all(nobody.runs.list())),
      lost: await failure(nowhere.runs.start({ agent: "teller", input: "Go." })),
    };
  },
};

console.log(JSON.stringify(await stories[story]()));
