// The waterfall of a run: model calls, tool calls and waits with their times and cost, beside the timeline. A click leads to
// the step in the timeline.
"use strict";
(() => {
  const list = document.getElementById("trace");
  const chosen = document.getElementById("chosen");
  const spans = [];
  const open = new Map(); // what is under way, by its key
  const waits = new Map(); // the last wait for a person, by the call
  const RENDER_EVERY_MS = 300;
  const VERDICTS = { allow: "allowed", require_approval: "approval required", deny: "denied" };
  const OWNERS = { "built-in": "Dragoman's default", organization: "policy of the organization", agent: "policy of the agent", run: "list of tools of the run" };
  const REASONS = {
    allowed: "no rule forbids the call",
    approval_required: "the rule asks for a person",
    tool_hidden: "the agent does not see the tool",
    tool_denied: "the rule denies the tool",
    parameter_denied: "a parameter may not be given",
    arguments_denied: "the arguments break the rule",
    max_calls_reached: "the run made as many calls as it may",
  };
  const LAYERS = { "built-in": "by default", organization: "by the organization's policy", agent: "by the agent's policy", run: "by the run's own list" };
  let first = null;
  let last = null;
  let ended = false;
  let planned = false;

  function begin(key, kind, name, at, item) {
    finish(key, at);
    const span = { kind, name, start: at, end: null, item, facts: [], policy: [], rule: "", cost: null, state: "", row: null };
    spans.push(span);
    open.set(key, span);
    return span;
  }

  function finish(key, at, state = "") {
    const span = open.get(key);
    if (!span) return null;
    span.end = Math.max(at, span.start);
    span.state = state;
    open.delete(key);
    return span;
  }

  function spend(span, usage) {
    if (!span || !usage) return;
    span.facts.push(["Tokens", `${usage.input_tokens.toLocaleString("en")} in, ${usage.output_tokens.toLocaleString("en")} out`], ["Model", usage.model]);
    span.cost = usage.cost_usd;
  }

  const takers = {
    "run.queued": (event, at, item) => begin("queue", "wait", "Queued", at, item),
    "run.started": (event, at) => finish("queue", at),
    "turn.started": (event, at, item) => begin("turn", "model", `Model call ${event.turn}`, at, item),
    "message.completed": (event, at) => { if (event.message.role === "assistant") spend(finish("turn", at, "ok"), event.usage); },
    "message.discarded": (event, at) => spend(finish("turn", at, "bad"), event.usage),
    "model.retrying": (event, at, item) => {
      begin("retry", "wait", `Attempt ${event.attempt} asks ${event.model}`, at, item);
      finish("retry", at + 1000 * event.wait_s, "bad");
    },
    "tool.started": (event, at, item) => begin(event.tool_call_id, "tool", event.name, at, item),
    "tool.executed": (event, at, item) => settle(event, at, item, "ok"),
    "tool.failed": (event, at, item) => settle(event, at, item, "bad"),
    "tool.blocked": (event, at, item) => settle(event, at, item, "bad"),
    "run.requires_action": (event, at, item) => {
      for (const each of event.pending) {
        const span = begin(`person ${each.id}`, "person", `${each.approval_id ? "Approval" : "A person"}: ${each.name}`, at, item);
        waits.set(each.id, span);
        span.rule = each.approval_id ? `Asked for by ${each.reason}` : "";
      }
    },
    "run.resumed": (event, at, item) => {
      for (const key of [...open.keys()]) if (key.startsWith("person ")) finish(key, at, "ok");
      begin("queue", "wait", "Queued", at, item);
    },
  };

  function decided(decision) {
    const by = `${LAYERS[decision.layer] || decision.layer}${decision.pattern ? ` for ${decision.pattern}` : ""}`;
    if (decision.verdict === "allow") return `Allowed ${by}`;
    if (decision.verdict === "require_approval") return `Approval required ${by}`;
    return `Denied ${by}: ${decision.reason.replaceAll("_", " ")}`;
  }

  function policyOf(decision) {
    return [
      ["Policy decision", VERDICTS[decision.verdict] || decision.verdict],
      ["Layer", OWNERS[decision.layer] || decision.layer],
      ["Rule", decision.pattern || "none: the default of the layer"],
      ["Reason", REASONS[decision.reason] || decision.reason.replaceAll("_", " ")],
    ];
  }

  // What a person has said about a call ends the wait for it, although the run may wait for other calls.
  function say(call, words, at) {
    const span = waits.get(call);
    if (!span || span.rule === words) return;
    span.rule = words;
    const key = `person ${call}`;
    if (Number.isFinite(at)) {
      if (open.get(key) === span) finish(key, at, "ok");
      else span.end = Math.max(span.start, Math.min(span.end ?? at, at));
    }
    plan();
  }

  function settle(event, at, item, state) {
    if (!open.has(event.tool_call_id)) begin(event.tool_call_id, "tool", event.name, at - (event.duration_ms || 0), item);
    const span = finish(event.tool_call_id, at, state);
    if (event.server) span.facts.push(["MCP server", event.server]);
    if (event.error) span.facts.push(["Error", event.error.code]);
    if (event.decision) {
      span.rule = decided(event.decision);
      span.policy = policyOf(event.decision);
    } else if (event.reason) {
      span.rule = `Blocked: ${event.reason.replaceAll("_", " ")}`;
      span.policy = [["Blocked", REASONS[event.reason] || event.reason.replaceAll("_", " ")]];
    }
  }

  // `item` is where the timeline shows it.
  function take(event, item) {
    const at = Date.parse(event.at);
    first ??= at;
    last = Math.max(last ?? at, at);
    takers[event.type]?.(event, at, item);
    if (/^run\.(completed|incomplete|failed|cancelled|halted)$/.test(event.type)) {
      ended = true;
      for (const key of [...open.keys()]) finish(key, at, event.type === "run.completed" ? "ok" : "bad");
    }
    plan();
  }

  function plan() {
    if (planned) return;
    planned = true;
    setTimeout(() => { planned = false; render(); }, list.childElementCount ? RENDER_EVERY_MS : 0);
  }

  function duration(ms) {
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
    return ms < 7200000 ? `${Math.round(ms / 60000)} min` : `${Math.round(ms / 3600000)} h`;
  }

  function money(cost) {
    return cost === null || cost === undefined ? "" : `$${cost.toFixed(cost < 1 ? 4 : 2)}`;
  }

  function part(className, parent) {
    const made = document.createElement("span");
    made.className = className;
    parent.append(made);
    return made;
  }

  function row(span) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    item.append(button);
    part("name", button).textContent = span.name;
    const bar = part("bar", part("track", button));
    const facts = part("took", button);
    button.addEventListener("click", () => choose(span));
    span.row = { item, button, bar, facts, rule: null, drawn: "" };
    return item;
  }

  function render() {
    const until = ended ? last : Math.max(last, Date.now());
    const whole = Math.max(until - first, 1);
    list.style.setProperty("--whole", whole); // what is drawn of ended spans stays as the run grows
    const added = document.createDocumentFragment();
    for (const span of spans) {
      if (!span.row) added.append(row(span));
      const end = span.end ?? until;
      const drawn = `${end} ${span.state} ${span.rule}`;
      if (span.row.drawn === drawn) continue;
      span.row.drawn = drawn;
      span.row.item.className = `${span.kind} ${span.state}`;
      if (span.rule) (span.row.rule ??= part("rule", span.row.button)).textContent = span.rule;
      span.row.bar.style.left = `calc(100% * ${span.start - first} / var(--whole))`;
      span.row.bar.style.width = `max(3px, 100% * ${end - span.start} / var(--whole))`;
      span.row.facts.textContent = [span.end === null ? "…" : duration(end - span.start), money(span.cost)].filter(Boolean).join(" · ");
    }
    list.append(added);
    performance.mark("trace-drawn");
    if (!ended && open.size) setTimeout(plan, 1000);
  }

  function tell(span) {
    const time = new Date(span.start).toISOString().slice(11, 23);
    const rows = [
      ["Began", `after ${duration(span.start - first)}, at ${time} UTC`],
      ["Took", span.end === null ? "under way" : duration(span.end - span.start)],
      ["Cost", money(span.cost)],
      ...span.facts,
      ...(span.kind === "person" ? [["Person", span.rule]] : span.policy),
    ];
    const title = document.createElement("strong");
    title.textContent = span.name;
    const facts = document.createElement("dl");
    facts.className = "facts";
    for (const [name, value] of rows) {
      if (!value) continue;
      const row = document.createElement("div");
      for (const [tag, text] of [["dt", name], ["dd", value]]) row.appendChild(document.createElement(tag)).textContent = text;
      facts.append(row);
    }
    chosen.replaceChildren(title, facts);
  }

  function choose(span) {
    for (const each of list.querySelectorAll("[aria-current]")) each.removeAttribute("aria-current");
    for (const each of document.querySelectorAll("#timeline > .chosen")) each.classList.remove("chosen");
    span.row.button.setAttribute("aria-current", "true");
    tell(span);
    if (!span.item) return;
    span.item.classList.add("chosen");
    span.item.scrollIntoView({ block: "center" });
  }

  const raw = document.getElementById("raw");
  raw?.addEventListener("toggle", async () => {
    if (!raw.open) return;
    const text = raw.querySelector("pre");
    try {
      const answer = await live.fetched(raw.dataset.events);
      if (answer) text.textContent = await answer.text();
    } catch {
      text.textContent = "The events could not be read. Close this and open it again.";
    }
  });

  window.trace = { take, decided, say };
})();
