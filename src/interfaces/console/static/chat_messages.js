// What a conversation shows: messages, and calls of tools between them, by stored messages and by events as they come.
// Markdown is rendered without raw HTML.
"use strict";
(() => {
  const log = document.getElementById("messages");
  const connection = document.getElementById("connection");
  const RENDER_EVERY_MS = 80;
  const NEAR_END_PX = 160;
  const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
  const messages = new Map(); // message id -> {id, item, text, source, role}
  const calls = new Map(); // tool call id -> {card, word}
  const waiting = new Set(); // messages whose text has grown

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
      item.id = id;
      item.setAttribute("aria-label", role === "user" ? "You" : "Answer");
      const text = element("div", "markdown");
      item.append(text);
      log.append(item);
      known = { id, item, text, source: "", role };
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
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", title);
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
    const attached = message.content.filter((part) => part.type === "image" || part.type === "file");
    if (message.role === "user" || (message.role === "assistant" && (texts.join("") || messages.has(message.id)))) {
      const known = bubble(message.id, message.role);
      known.source = texts.join("\n");
      waiting.delete(known);
      draw(known);
      if (!known.isComplete) {
        known.isComplete = true;
        known.attached = attached.length;
        known.item.append(...attached.map(attachment), actions(known));
        if (message.role === "user" && message.run_id) branched(known);
      }
    }
    for (const part of message.content) {
      if (part.type === "tool_use") call(part.id, part.name, part.malformed ?? part.params);
      else if (part.type === "tool_result") result(part);
    }
  }

  function button(text, label, press) {
    const made = element("button", "plain copy", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.addEventListener("click", press, { capture: true });
    return made;
  }

  // What the frame copies is written to the button as it is pressed.
  function copying(text, label, source) {
    const made = button(text, label, () => { made.dataset.text = source(); });
    made.dataset.copy = "";
    return made;
  }

  function actions(known) {
    const row = element("div", "acts");
    row.append(copying("Copy", "Copy the message", () => known.source));
    if (known.role === "user" && log.dataset.editable !== undefined) {
      row.append(button("Edit", "Edit the message", () => log.dispatchEvent(new CustomEvent("message-edited", { detail: known }))));
    }
    row.append(copying("Link", "Copy a link to the message", () => linkTo(known.id)));
    return row;
  }

  // For people of the organization, who read the conversation at this place.
  const linkTo = (id) => `${location.origin}/console/chat/${log.dataset.thread}?shared=${id}`;

  // A link to the other thread at the place where a branch left it, and at its beginning there.
  function note(known, text, href) {
    const line = element("p", "meta branch");
    const link = element("a", "", text);
    link.href = href;
    line.append(link);
    known.item.append(line);
  }

  function branched(known) {
    if (!log.dataset.origin) return;
    note(known, "Edited: the message before", log.dataset.origin);
    delete log.dataset.origin;
  }

  function left(forks) {
    for (const fork of forks.toReversed()) {
      const known = messages.get(fork.before);
      if (known) note(known, "Edited later: that branch", `/console/chat/${fork.thread_id}`);
    }
  }

  // False where the message is not in the conversation.
  function goTo(id) {
    const known = messages.get(id);
    known?.item.classList.add("place");
    known?.item.scrollIntoView({ block: "start" });
    return Boolean(known);
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

  window.conversation = { complete, element, goTo, growing, handlers, left, linkTo };
})();
