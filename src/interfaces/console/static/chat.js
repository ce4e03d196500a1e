// A conversation: its stored messages, then the events of its unfinished runs, one after the other, as they come. While one
// is followed nothing is sent. Markdown is rendered without raw HTML.
"use strict";
(() => {
  const log = document.getElementById("messages");
  const connection = document.getElementById("connection");
  const state = document.getElementById("state");
  const form = document.getElementById("composer");
  const stop = document.getElementById("stop");
  const RENDER_EVERY_MS = 80;
  const NEAR_END_PX = 160;
  const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
  const CHANGES = new Set(["run.requires_action", "run.resumed", "run.completed", "run.incomplete", "run.failed", "run.cancelled", "run.halted"]);
  const messages = new Map(); // message id -> {item, text, source}
  const calls = new Map(); // tool call id -> {card, word}
  const waiting = new Set(); // messages whose text has grown
  let thread = log.dataset.thread;
  let run = null;
  let seq = 0;
  let busy = false; // until the run that is followed has ended
  let queued = []; // runs that are followed after it

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The page follows its end while it grows, unless the reader has scrolled up.
  function growing(change) {
    const page = document.documentElement;
    const follows = page.scrollHeight - page.scrollTop - page.clientHeight < NEAR_END_PX;
    change();
    if (follows) page.scrollTop = page.scrollHeight;
  }

  function bubble(id, role) {
    let known = messages.get(id);
    if (!known) {
      const item = element("article", `bubble ${role}`);
      item.setAttribute("aria-label", role === "user" ? "You" : "Answer");
      const text = element("div", "markdown");
      item.append(text);
      log.append(item);
      known = { item, text, source: "", role };
      messages.set(id, known);
    }
    return known;
  }

  function draw(known) {
    if (known.role === "user") known.text.textContent = known.source;
    else known.text.innerHTML = markdown.render(known.source);
  }

  function grow(id, text) {
    const known = bubble(id, "assistant");
    known.source += text;
    if (!waiting.size) setTimeout(() => growing(() => { waiting.forEach(draw); waiting.clear(); }), RENDER_EVERY_MS);
    waiting.add(known);
  }

  function reason(id, text) {
    const known = bubble(id, "assistant");
    if (!known.reasoning) {
      const details = element("details", "meta");
      known.reasoning = element("div", "text");
      details.append(element("summary", "", "Reasoning"), known.reasoning);
      known.item.prepend(details);
    }
    known.reasoning.append(text);
  }

  function folded(title, value) {
    const details = element("details");
    const text = element("pre", "", typeof value === "string" ? value : JSON.stringify(value, null, 2));
    text.tabIndex = 0;
    details.append(element("summary", "meta", title), text);
    return details;
  }

  function call(id, name, params) {
    let known = calls.get(id);
    if (!known) {
      const card = element("section", "tool card");
      card.setAttribute("aria-label", `Call of ${name}`);
      const word = element("span", "meta", "asked for");
      const head = element("div");
      head.append(element("strong", "mono", name), " ", word);
      card.append(head);
      log.append(card);
      known = { card, word, hasResult: false, hasArguments: false };
      calls.set(id, known);
    }
    if (params !== undefined && !known.hasArguments) {
      known.hasArguments = true;
      known.card.append(folded("Arguments", params));
    }
    return known;
  }

  function settled(event, className, word) {
    const known = call(event.tool_call_id, event.name);
    known.card.classList.add(className);
    const facts = [word];
    if (event.duration_ms) facts.push(event.duration_ms < 1000 ? `${event.duration_ms} ms` : `${(event.duration_ms / 1000).toFixed(1)} s`);
    if (event.server) facts.push(`server ${event.server}`);
    known.word.textContent = facts.join(" · ");
  }

  function attachment(part) {
    if (part.data && IMAGES.has(part.media_type)) {
      const image = element("img");
      image.src = `data:${part.media_type};base64,${part.data}`;
      image.alt = "Attached image";
      return image;
    }
    return element("div", "meta", ["Attached:", part.name, part.media_type, part.url].filter(Boolean).join(" "));
  }

  function result(part) {
    const known = calls.get(part.tool_id);
    if (!known || known.hasResult) return;
    known.hasResult = true;
    if (known.word.textContent === "asked for") known.word.textContent = part.is_error ? "failed" : "done";
    known.card.classList.add(part.is_error ? "bad" : "ok");
    if (part.result) known.card.append(folded("Result", part.result));
    for (const each of [...(part.images || []), ...(part.files || [])]) known.card.append(attachment(each));
  }

  function complete(message) {
    const texts = message.content.filter((part) => part.type === "text").map((part) => part.text);
    if (message.role === "user" || (message.role === "assistant" && (texts.join("") || messages.has(message.id)))) {
      const isNew = !messages.has(message.id);
      const known = bubble(message.id, message.role);
      known.source = texts.join("\n");
      waiting.delete(known);
      draw(known);
      if (isNew) for (const part of message.content) if (part.type === "image" || part.type === "file") known.item.append(attachment(part));
      if (isNew && message.role === "assistant") known.item.append(copying(known));
    }
    for (const part of message.content) {
      if (part.type === "tool_use") call(part.id, part.name, part.malformed ?? part.params);
      else if (part.type === "tool_result") result(part);
    }
  }

  function copying(known) {
    const button = element("button", "plain copy", "Copy");
    button.type = "button";
    button.setAttribute("aria-label", "Copy the message");
    button.addEventListener("click", () => { button.dataset.text = known.source; }, { capture: true });
    button.dataset.copy = "";
    return button;
  }

  const handlers = {
    "message.delta": (event) => grow(event.message_id, event.text),
    "reasoning.delta": (event) => reason(event.message_id, event.text),
    "message.completed": (event) => complete(event.message),
    "message.discarded": (event) => bubble(event.message_id, "assistant").item.classList.add("discarded"),
    "model.retrying": (event) => { connection.textContent = `Attempt ${event.attempt} asks ${event.model}`; },
    "tool.started": (event) => { call(event.tool_call_id, event.name, event.params).word.textContent = "under way"; },
    "tool.executed": (event) => settled(event, "ok", "done"),
    "tool.failed": (event) => settled(event, "bad", "failed"),
    "tool.blocked": (event) => settled(event, "bad", "blocked"),
    "run.requires_action": (event) => { for (const each of event.pending) call(each.id, each.name, each.params).word.textContent = each.approval_id ? "waits for approval" : "waits for a person"; },
    "run.started": () => {}, "run.resumed": () => {}, "run.completed": () => {}, "run.incomplete": () => {},
    "run.failed": () => {}, "run.cancelled": () => {}, "run.halted": () => {},
  };

  function take(event) {
    if (event.seq <= seq) return;
    seq = event.seq;
    growing(() => handlers[event.type]?.(event));
    if (CHANGES.has(event.type)) refresh();
  }

  // What waits for people, what failed, and the retry are the part of the run's page about its state.
  function refresh() {
    htmx.ajax("GET", `/console/runs/${run}/state`, { target: "#state", swap: "innerMorph" });
  }

  function working(is) {
    busy = is;
    if (!form) return;
    stop.hidden = !is;
    const button = form.querySelector("[type=submit]");
    button.disabled = is;
    button.title = is ? "Once the answer has ended" : "";
  }

  function over(status) {
    connection.textContent = `Ended: ${status}`;
    working(false);
    refresh();
    const next = queued.shift();
    if (next) follow(next.id);
  }

  function follow(id) {
    run = id;
    seq = 0;
    working(true);
    connection.textContent = "Connecting …";
    live.follow({
      connection,
      stream: `/console/runs/${id}/stream`,
      types: Object.keys(handlers),
      take: (message) => take(JSON.parse(message.data)),
      ended: over,
      begin: async () => {
        for (;;) {
          const answer = await live.fetched(`/console/runs/${id}/events?after=${seq}`);
          if (!answer) return null;
          const page = await answer.json();
          growing(() => page.data.forEach((event) => { if (event.seq > seq) handlers[event.type]?.(event); }));
          seq = Math.max(seq, page.last_seq);
          if (page.more) continue;
          if (!page.is_over) { refresh(); return seq; }
          over(page.status);
          return null;
        }
      },
    });
  }

  async function load() {
    let cursor = "";
    for (;;) {
      const answer = await live.fetched(`/console/chat/${thread}/messages?${cursor}`);
      if (!answer) return;
      const page = await answer.json();
      page.data.forEach(complete);
      if (page.next_cursor) { cursor = `cursor=${encodeURIComponent(page.next_cursor)}`; continue; }
      queued = page.runs;
      if (queued.length) follow(queued.shift().id);
      document.documentElement.scrollTop = document.documentElement.scrollHeight;
      return;
    }
  }

  const token = () => JSON.parse(document.body.getAttribute("hx-headers:inherited"));

  async function post(path, body) {
    try {
      const answer = await fetch(path, { method: "POST", body, headers: { ...token(), "HX-Request": "true", "HX-Current-URL": location.href } });
      const target = answer.headers.get("HX-Redirect");
      if (target) { location.assign(target); return null; }
      if (answer.ok) return answer;
      const shown = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".flash");
      if (shown) document.getElementById("flash").replaceChildren(shown);
      else frame.tell("Not sent", `The answer was HTTP ${answer.status}.`);
    } catch {
      frame.tell("Not sent", "The service cannot be reached. Try again once the connection is back.");
    }
    return null;
  }

  async function send(event) {
    event.preventDefault();
    if (busy || form.dataset.sending !== undefined || !form.reportValidity()) return;
    form.dataset.sending = "";
    document.getElementById("flash").replaceChildren();
    const data = new FormData(form);
    if (thread) data.set("thread_id", thread);
    const answer = await post("/console/chat", data);
    const started = await answer?.json();
    delete form.dataset.sending;
    if (!started) return;
    form.elements.input.value = "";
    form.elements.files.value = "";
    state.replaceChildren();
    if (!thread) {
      thread = started.thread_id;
      history.replaceState(null, "", `/console/chat/${thread}`);
    }
    follow(started.run_id);
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
    document.body.dispatchEvent(new CustomEvent("conversations-changed"));
  }

  form?.addEventListener("submit", send);
  form?.elements.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  });
  stop?.addEventListener("click", () => post(`/console/runs/${run}/cancel`));
  document.body.addEventListener("approval-decided", () => { if (run) refresh(); });
  if (thread) load();
})();
