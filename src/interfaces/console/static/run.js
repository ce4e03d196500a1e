// The timeline of a run: what is stored so far in one go, then its events as they come, in order, each once. Whatever an
// event holds is shown as text.
"use strict";
(() => {
  const list = document.getElementById("timeline");
  const connection = document.getElementById("connection");
  const calls = new Map(); // tool call id -> what is drawn of it
  const messages = new Map(); // message id -> {item, text}
  const MEDIA_TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
  const WORDS = { approved: "Approved", denied: "Denied", expired: "Not decided in time", stale: "To be decided again: the agent has changed", cancelled: "Not decided: the run ended" };
  const LETTERS = {
    send_email: [["To", "to"], ["Subject", "subject"], ["", "body"]],
    create_calendar_event: [["What", "title"], ["From", "start"], ["Until", "end"], ["Where", "location"], ["", "description"]],
  };
  let target = list; // where lines go: the list, or what will be put into it in one go
  let seq = 0;
  let turn = null;
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
    target.append(item);
    return item;
  }

  function shown(value) {
    return typeof value === "string" ? value : JSON.stringify(value, null, 2);
  }

  function folded(title, value) {
    const details = element("details");
    details.append(element("summary", "meta", title));
    const text = element("pre", "", shown(value));
    text.tabIndex = 0;
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", title);
    details.append(text);
    return details;
  }

  function picture(part, about) {
    if (part.data && MEDIA_TYPES.has(part.media_type)) {
      const image = element("img");
      image.src = `data:${part.media_type};base64,${part.data}`;
      image.alt = about;
      return image;
    }
    // Not fetched: its server would learn who looks at this run.
    if (!/^https?:/.test(part.url || "")) return element("div", "meta", `${about}: ${part.media_type}`);
    const link = element("a", "", `${about}: ${part.url}`);
    link.href = part.url;
    link.rel = "noopener noreferrer";
    link.target = "_blank";
    return link;
  }

  function attached(file, about) {
    if (file.url) return picture(file, about);
    return element("div", "meta", `${about}: ${[file.name, file.media_type, file.bytes && `${file.bytes.toLocaleString("en")} bytes`].filter(Boolean).join(" · ")}`);
  }

  function spent(usage) {
    const count = (number) => number.toLocaleString("en");
    const cached = usage.cached_tokens ? ` (${count(usage.cached_tokens)} cached)` : "";
    const reasoning = usage.reasoning_tokens ? ` (${count(usage.reasoning_tokens)} reasoning)` : "";
    const facts = [`${count(usage.input_tokens)} tokens in${cached}, ${count(usage.output_tokens)} out${reasoning}${usage.estimated ? ", estimated" : ""}`];
    if (usage.cost_usd !== null) facts.push(`$${usage.cost_usd.toFixed(usage.cost_usd < 1 ? 4 : 2)}`);
    return [...facts, usage.model].join(" · ");
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

  function reasoning(id) {
    const known = said(id);
    if (!known.reasoning) {
      const details = element("details");
      known.reasoning = element("div", "text");
      details.append(element("summary", "meta", "Reasoning"), known.reasoning);
      known.item.prepend(details);
    }
    return known.reasoning;
  }

  function call(id, name, params) {
    let known = calls.get(id);
    if (!known) {
      const item = line("call");
      const head = element("div");
      const title = element("strong", "mono", name);
      const state = element("span", "meta", "asked for");
      head.append(title, " ", state);
      const policy = element("div", "meta");
      item.append(head, policy);
      known = { item, title, state, policy, decision: "", word: "", asked: null, progress: null };
      calls.set(id, known);
    }
    if (params !== undefined) arguments_(known, name, params);
    return known;
  }

  function arguments_(known, name, params) {
    const text = shown(params);
    if (known.asked && known.asked.text === text && known.title.textContent === name) return;
    known.title.textContent = name;
    const drawn = LETTERS[name] ? letter(LETTERS[name], params) : folded("Arguments", params);
    if (known.asked) known.asked.drawn.replaceWith(drawn);
    else known.item.append(drawn);
    known.asked = { drawn, text };
  }

  function letter(rows, params) {
    const card = element("div", "card letter");
    for (const [title, key] of rows) {
      if (params[key] === undefined) continue;
      const row = element("div", title ? "" : "text");
      if (title) row.append(element("span", "meta", `${title}: `));
      row.append(shown(params[key]));
      card.append(row);
    }
    return card;
  }

  function tellPolicy(known) {
    known.policy.textContent = [known.decision, known.word].filter(Boolean).join(" · ");
  }

  function settled(event, className, word) {
    const known = call(event.tool_call_id, event.name);
    known.item.classList.add(className);
    const facts = [word];
    if (event.duration_ms) facts.push(event.duration_ms < 1000 ? `${event.duration_ms} ms` : `${(event.duration_ms / 1000).toFixed(1)} s`);
    if (event.server) facts.push(`server ${event.server}`);
    known.state.textContent = facts.join(" · ");
    if (event.decision) known.decision = trace.decided(event.decision);
    tellPolicy(known);
    if (known.progress) known.progress.remove();
    if (event.error) known.item.append(folded(`Error ${event.error.code}`, event.error.detail));
    if (event.reason) known.item.append(element("div", "meta", `Blocked: ${event.reason.replaceAll("_", " ")}`));
  }

  // What people decided about calls stands in the part of the page that is fetched again whenever the run changes.
  function tellWords() {
    for (const each of document.querySelectorAll("#words > li")) {
      const known = calls.get(each.dataset.call);
      if (!known) continue;
      const { state, by, byId, at, reason, edited } = each.dataset;
      const facts = [WORDS[state] || state];
      if (edited) facts.push("with other arguments");
      if (by && by !== "system") facts.push(`by ${by}`);
      known.word = facts.join(" ") + (reason ? `: ${reason}` : "");
      known.policy.title = byId;
      tellPolicy(known);
      trace.say(each.dataset.call, known.word, Date.parse(at));
    }
  }

  function result(part) {
    const known = calls.get(part.tool_id);
    if (!known) return;
    if (part.result) known.item.append(folded("Result", part.result));
    for (const image of part.images || []) known.item.append(picture(image, `Image from ${part.tool_name}`));
    for (const file of part.files || []) known.item.append(attached(file, `File from ${part.tool_name}`));
  }

  function complete(event) {
    const { message } = event;
    const texts = message.content.filter((part) => part.type === "text").map((part) => part.text);
    if (message.role === "assistant") {
      if (texts.join("") || messages.has(message.id)) said(message.id).text.textContent = texts.join("\n");
      for (const part of message.content) if (part.type === "tool_use") call(part.id, part.name, part.malformed ?? part.params);
      if (event.usage && turn) turn.append(element("span", "meta", ` ${spent(event.usage)}`));
    } else if (message.role === "user") {
      const item = line("asked");
      item.append(element("div", "meta", "User"), element("div", "text", texts.join("\n")));
      for (const part of message.content) if (part.type === "image") item.append(picture(part, "Image from the user"));
      for (const part of message.content) if (part.type === "file") item.append(attached(part, "File from the user"));
    } else {
      for (const part of message.content) if (part.type === "tool_result") result(part);
    }
  }

  const handlers = {
    "run.queued": () => line("meta", "Queued"),
    "run.started": (event) => line("meta", event.attempt > 1 ? `Claimed by a worker (attempt ${event.attempt})` : "Claimed by a worker"),
    "turn.started": (event) => { turn = line("turn", `Turn ${event.turn}`); },
    "message.delta": (event) => { said(event.message_id).text.append(event.text); },
    "reasoning.delta": (event) => { reasoning(event.message_id).append(event.text); },
    "message.completed": complete,
    "message.discarded": (event) => {
      const known = said(event.message_id);
      known.text.classList.add("discarded");
      const cost = event.usage ? ` · about ${spent(event.usage)}` : "";
      known.item.append(element("div", "meta", `Discarded: ${event.reason.replaceAll("_", " ")}${cost}`));
    },
    "model.retrying": (event) => line("wait", `The model call failed; attempt ${event.attempt} asks ${event.model}${event.wait_s >= 1 ? ` in ${Math.round(event.wait_s)} s` : ""}`),
    "tool.started": (event) => { call(event.tool_call_id, event.name, event.params).state.textContent = "under way"; },
    "tool.progress": (event) => {
      const known = calls.get(event.tool_call_id);
      if (!known) return;
      if (!known.progress) { known.progress = element("div", "meta"); known.item.append(known.progress); }
      const share = event.total ? ` ${Math.round((100 * event.progress) / event.total)} %` : "";
      known.progress.textContent = `${event.message || "Progress"}${share}`;
    },
    "tool.executed": (event) => settled(event, "ok", "done"),
    "tool.failed": (event) => settled(event, "bad", "failed"),
    "tool.blocked": (event) => settled(event, "bad", "blocked"),
    "run.requires_action": (event) => {
      const names = event.pending.map((each) => each.name).join(", ");
      for (const each of event.pending) call(each.id, each.name, each.params).state.textContent = each.approval_id ? "waits for approval" : "waits for a person";
      line("wait", `Waiting for a person: ${names}`);
    },
    "run.resumed": () => line("meta", "Resumed"),
    "run.completed": () => line("call ok", "Completed"),
    "run.incomplete": (event) => line("wait", `Ended early: ${event.reason.replaceAll("_", " ")}`),
    "run.failed": (event) => line("bad", `Failed: ${event.error.code}. ${event.error.detail}`),
    "run.cancelled": () => line("bad", "Cancelled"),
    "run.halted": (event) => line("bad", `Halted: ${event.reason}`),
  };

  function placeOf(event) {
    if (event.tool_call_id) return calls.get(event.tool_call_id)?.item;
    return event.type === "message.completed" ? turn : target.lastElementChild;
  }

  function handle(event) {
    if (event.seq <= seq) return false; // sent again after a reconnection
    seq = event.seq;
    handlers[event.type]?.(event);
    trace.take(event, placeOf(event));
    return true;
  }

  function changed() {
    document.body.dispatchEvent(new CustomEvent("run-changed"));
  }

  function draw() {
    drawing = false;
    const drawn = queue.filter(handle);
    queue = [];
    tellWords();
    if (drawn.some((event) => event.type.startsWith("run.") || event.type === "turn.started")) changed();
  }

  function take(message) {
    queue.push(JSON.parse(message.data));
    if (!drawing) {
      drawing = true;
      setTimeout(draw, 30); // what comes together is drawn together
    }
  }

  function drawTogether(events) {
    target = document.createDocumentFragment();
    events.forEach(handle);
    list.append(target);
    target = list;
    tellWords();
  }

  async function catchUp() {
    for (;;) {
      const answer = await live.fetched(`${list.dataset.events}?after=${seq}`);
      if (!answer) return null;
      const page = await answer.json();
      drawTogether(page.data);
      seq = Math.max(seq, page.last_seq);
      if (!page.more) return page;
    }
  }

  function ended(status) {
    connection.textContent = `Ended: ${status}`;
    if (document.getElementById("status")?.dataset.state !== status) changed();
  }

  async function begin() {
    const page = await catchUp();
    if (!page) return null;
    performance.mark("timeline-drawn");
    if (page.is_over) {
      ended(page.status);
      return null;
    }
    if (document.getElementById("status")?.dataset.state !== page.status) changed();
    return seq;
  }

  document.getElementById("state").addEventListener("htmx:after:swap", tellWords);
  live.follow({ connection, stream: list.dataset.stream, types: Object.keys(handlers), begin, take, ended });
})();
