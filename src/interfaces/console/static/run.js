// The timeline of a run: its events as they come, in order, each once. Whatever an event holds is shown as text.
"use strict";
(() => {
  const list = document.getElementById("timeline");
  const connection = document.getElementById("connection");
  const calls = new Map(); // tool call id -> {item, body}
  const messages = new Map(); // message id -> {item, text}
  let seq = 0;
  let source = null;
  let queue = [];
  let drawing = false;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function line(className, text) {
    const item = element("li", className);
    if (text !== undefined) item.append(element("span", "", text));
    list.append(item);
    return item;
  }

  function folded(title, value) {
    const details = element("details");
    details.append(element("summary", "meta", title));
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    details.append(element("pre", "", text));
    return details;
  }

  function said(id) {
    let known = messages.get(id);
    if (!known) {
      const item = line("said");
      const text = element("div", "text");
      item.append(text);
      known = { item, text };
      messages.set(id, known);
    }
    return known;
  }

  function call(event) {
    let known = calls.get(event.tool_call_id);
    if (!known) {
      const item = line("call");
      const head = element("div");
      head.append(element("strong", "mono", event.name));
      const state = element("span", "meta", "");
      head.append(" ", state);
      item.append(head);
      known = { item, state, progress: null };
      calls.set(event.tool_call_id, known);
    }
    return known;
  }

  function settled(event, className, word) {
    const known = call(event);
    known.item.classList.add(className);
    const facts = [word];
    if (event.duration_ms !== undefined) facts.push(`${event.duration_ms} ms`);
    if (event.server) facts.push(event.server);
    known.state.textContent = facts.join(" · ");
    if (known.progress) known.progress.remove();
    if (event.error) known.item.append(folded("Error", event.error));
    if (event.reason) known.item.append(element("div", "meta", event.reason));
  }

  function result(part) {
    const known = calls.get(part.tool_id);
    if (known && part.result !== undefined) known.item.append(folded("Result", part.result));
  }

  function complete(message) {
    if (message.role === "assistant") {
      const texts = message.content.filter((part) => part.type === "text").map((part) => part.text);
      if (texts.length || messages.has(message.id)) said(message.id).text.textContent = texts.join("\n");
      return;
    }
    for (const part of message.content) if (part.type === "tool_result") result(part);
  }

  const handlers = {
    "run.queued": () => line("meta", "Queued"),
    "run.started": () => line("meta", "Taken up by a worker"),
    "turn.started": (event) => line("turn", `Turn ${event.turn}`),
    "message.delta": (event) => { said(event.message_id).text.append(event.text); },
    "message.completed": (event) => complete(event.message),
    "message.discarded": (event) => {
      said(event.message_id).text.classList.add("discarded");
      said(event.message_id).item.append(element("div", "meta", `Discarded: ${event.reason}`));
    },
    "model.retrying": (event) => line("wait", `${event.model} is tried again (attempt ${event.attempt})`),
    "tool.started": (event) => {
      const known = call(event);
      known.state.textContent = "under way";
      known.item.append(folded("Arguments", event.params));
    },
    "tool.progress": (event) => {
      const known = call(event);
      if (!known.progress) { known.progress = element("div", "meta"); known.item.append(known.progress); }
      const share = event.total ? ` ${Math.round((100 * event.progress) / event.total)} %` : "";
      known.progress.textContent = `${event.message || "Progress"}${share}`;
    },
    "tool.executed": (event) => settled(event, "ok", "done"),
    "tool.failed": (event) => settled(event, "bad", "failed"),
    "tool.blocked": (event) => settled(event, "bad", "blocked"),
    "run.requires_action": (event) => {
      const names = event.pending.map((each) => each.name).join(", ");
      line("wait", `Waiting for somebody: ${names}`);
    },
    "run.resumed": () => line("meta", "Resumed"),
    "run.completed": () => line("call ok", "Completed"),
    "run.incomplete": (event) => line("wait", `Ended early: ${event.reason}`),
    "run.failed": (event) => line("bad", `Failed: ${event.error.code}. ${event.error.detail}`),
    "run.cancelled": () => line("bad", "Cancelled"),
    "run.halted": (event) => line("bad", `Halted: ${event.reason}`),
  };

  function draw() {
    drawing = false;
    let changed = false;
    for (const event of queue) {
      if (event.seq <= seq) continue; // sent again after a reconnection
      seq = event.seq;
      handlers[event.type]?.(event);
      changed ||= event.type.startsWith("run.") || event.type === "turn.started";
    }
    queue = [];
    if (changed) document.body.dispatchEvent(new CustomEvent("run-changed"));
  }

  function take(message) {
    queue.push(JSON.parse(message.data));
    if (!drawing) {
      drawing = true;
      // Many events come at once when a page opens: they are drawn together.
      setTimeout(draw, 30);
    }
  }

  function connect() {
    source = new EventSource(`${list.dataset.stream}?after=${seq}`);
    for (const type of Object.keys(handlers)) source.addEventListener(type, take);
    source.addEventListener("open", () => { connection.textContent = "Live"; });
    source.addEventListener("end", (message) => {
      source.close();
      connection.textContent = `Ended: ${JSON.parse(message.data).status}`;
    });
    source.addEventListener("error", () => {
      // Browsers give up on some answers (a service that is starting answers nothing, a proxy 502): we do not.
      connection.textContent = "Disconnected. Trying again …";
      source.close();
      setTimeout(connect, 1000);
    });
  }

  connect();
})();
