// A conversation: its stored messages, then the events of its unfinished runs, one after the other, as they come. While one
// is followed nothing is sent at its end; an earlier message is edited and sent again on a branch.
"use strict";
(() => {
  const { complete, element, goTo, growing, handlers, left, linkTo } = window.conversation;
  const log = document.getElementById("messages");
  const connection = document.getElementById("connection");
  const state = document.getElementById("state");
  const form = document.getElementById("composer");
  const stop = document.getElementById("stop");
  const share = document.getElementById("share");
  const CHANGES = new Set(["run.requires_action", "run.resumed", "run.completed", "run.incomplete", "run.failed", "run.cancelled", "run.halted"]);
  const presented = new Set(); // what waits for people and was scrolled to, by its element's id
  let thread = log.dataset.thread;
  let run = null;
  let seq = 0;
  let busy = false; // until the run that is followed has ended
  let queued = []; // runs that are followed after it

  function take(event) {
    if (event.seq <= seq) return;
    seq = event.seq;
    growing(() => handlers[event.type]?.(event));
    if (CHANGES.has(event.type)) refresh();
  }

  // What waits for people, what failed, and the retry are the part of the run's page about its state.
  function refresh() {
    if (log.dataset.shared) return;
    htmx.ajax("GET", `/console/runs/${run}/state`, { target: "#state", swap: "innerMorph" });
  }

  // What newly waits for a person is scrolled to: a card as a whole, one that is higher than the window at its head.
  function present() {
    const card = [...state.querySelectorAll(".waiting form[id]")].find((each) => !presented.has(each.id));
    if (!card) return;
    presented.add(card.id);
    const whole = card.closest(".waiting");
    const shown = whole.offsetHeight < innerHeight ? whole : card;
    shown.scrollIntoView({ block: shown.offsetHeight < innerHeight ? "nearest" : "start" });
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
      left(page.forks);
      queued = page.runs;
      if (queued.length) follow(queued.shift().id);
      if (!goTo(log.dataset.shared || location.hash.slice(1))) document.documentElement.scrollTop = document.documentElement.scrollHeight;
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
      thread = log.dataset.thread = started.thread_id;
      share.hidden = false;
      document.title = `${data.get("input").trim().split(/\s+/).join(" ").slice(0, 90)} · Dragoman`;
      history.replaceState(null, "", `/console/chat/${thread}`);
    }
    follow(started.run_id);
    document.documentElement.scrollTop = document.documentElement.scrollHeight;
    document.body.dispatchEvent(new CustomEvent("conversations-changed"));
  }

  async function branch(known, text) {
    const data = new FormData();
    for (const [name, value] of [["agent", form.elements.agent.value], ["input", text], ["thread_id", thread], ["before", known.id]]) data.set(name, value);
    const answer = await post("/console/chat", data);
    const started = await answer?.json();
    if (started) location.assign(`/console/chat/${started.thread_id}`);
    return Boolean(started);
  }

  function edit({ detail: known }) {
    if (known.item.querySelector("form")) return;
    const editing = element("form", "edit");
    const label = element("label", "unseen", "Edited message");
    const area = element("textarea");
    area.id = label.htmlFor = `edit-${known.id}`;
    area.required = true;
    area.value = known.source;
    area.rows = Math.min(area.value.split("\n").length + 1, 14);
    const row = element("div", "actions");
    const go = element("button", "", "Send as a branch");
    const cancel = element("button", "plain", "Cancel");
    cancel.type = "button";
    row.append(go, cancel);
    const what = known.attached ? " Its attachments are sent again." : "";
    editing.append(label, area, element("p", "hint", `The conversation continues from here in a new thread; this one stays.${what}`), row);
    const close = () => { editing.remove(); known.item.classList.remove("editing"); };
    cancel.addEventListener("click", close);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); editing.requestSubmit(); }
    });
    editing.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      if (!(await branch(known, area.value))) go.disabled = false;
    });
    known.item.classList.add("editing");
    known.text.after(editing);
    area.focus();
  }

  log.addEventListener("message-edited", edit);
  share.querySelector("button").addEventListener("click", (event) => {
    event.currentTarget.dataset.text = linkTo(log.querySelector(".bubble:last-of-type")?.id ?? "end");
  }, { capture: true });
  document.addEventListener("htmx:after:swap", present);
  form?.addEventListener("submit", send);
  form?.elements.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  });
  stop?.addEventListener("click", () => post(`/console/runs/${run}/cancel`));
  document.body.addEventListener("approval-decided", () => { if (run) refresh(); });
  if (thread) load();
})();
