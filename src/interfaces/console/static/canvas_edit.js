// The editor of a workflow. One text is edited, as YAML or on the canvas: a change on the canvas is made in the document of the text, whose
// comments, order and style stay. The service checks each change; its faults are shown at the nodes and fields.
"use strict";
(() => {
  const { make, handlesOf, isToolWire } = canvas;
  const CHECK_AFTER_MS = 200;
  const form = document.getElementById("form");
  const area = document.getElementById("definition");
  const nameField = document.getElementById("name");
  const teamField = document.getElementById("team");
  const panel = document.getElementById("panel");
  const verdict = document.getElementById("verdict");
  const told = document.getElementById("checked");
  const forms = JSON.parse(form.dataset.forms);
  const choices = JSON.parse(form.dataset.choices);
  const token = JSON.parse(document.body.getAttribute("hx-headers:inherited"));

  let checked = { errors: [], warnings: [], places: null };
  let spots = new Map();
  let tellers = new Map();
  let timer = null;
  let asked = 0;
  let startButton = null; // a workflow has one start

  const formOf = (node) => forms.find((each) => each.kind === node.kind && each.mode === node.mode);
  const text = canvasText.create(area, changed);
  const nodeOf = text.nodeOf;

  const titleOf = (node) => canvas.title(node, formOf(node)?.title ?? node.kind);

  // --- changes of the text

  function freeId(wanted) {
    if (!nodeOf(wanted)) return wanted;
    for (let number = 2; ; number += 1) if (!nodeOf(`${wanted}_${number}`)) return `${wanted}_${number}`;
  }

  // A new node comes behind the chosen one and is wired to it; a tool, to the agent that is chosen.
  function addNode(kind, place = null) {
    const id = freeId(kind.id);
    const isTool = kind.mode === "tool";
    const anchor = anchorOf(isTool);
    const handle = anchor && !isTool ? openHandle(anchor) : null;
    const after = handle !== null && kind.kind !== "entrypoint" ? { source: anchor.id, handle, target: id } : null;
    spots.set(id, place ?? beside(anchor, isTool));
    const edge = isTool && anchor ? { source: id, target: anchor.id, tool: true } : after;
    if (!text.add({ id, kind: kind.kind, ...(isTool && { mode: "tool" }) }, edge)) return;
    board.choose({ node: id });
    board.reveal(id);
    panel.querySelector("[data-first]")?.focus();
  }

  function anchorOf(isTool) {
    const chosen = nodeOf(chosenId());
    const agents = text.model().nodes.filter((node) => node.kind === "agent" && node.mode === "normal");
    const wired = chosen?.mode === "tool" ? nodeOf(text.model().edges.find((edge) => edge.source === chosen.id && isToolWire(edge))?.target) : null;
    if (isTool) return chosen?.kind === "agent" && chosen.mode === "normal" ? chosen : wired ?? (agents.length === 1 ? agents[0] : null);
    if (chosen) return chosen.mode === "tool" ? wired : chosen;
    return text.model().nodes.filter((node) => node.mode === "normal").at(-1) ?? null;
  }

  function openHandle(node) {
    const taken = new Set(text.model().edges.filter((edge) => edge.source === node.id).map((edge) => edge.source_handle));
    return handlesOf(node).find((handle) => !taken.has(handle)) ?? (node.kind === "condition" ? null : "");
  }

  function beside(anchor, isTool) {
    const [x, y] = anchor ? spots.get(anchor.id) ?? [0, 0] : [0, 0];
    let place = isTool ? [x - canvas.COLUMN, y + canvas.ROW] : [x + (anchor ? canvas.COLUMN : 0), y];
    const taken = ([left, top]) => [...spots].some(([id, [otherX, otherY]]) => nodeOf(id) && Math.abs(otherX - left) < canvas.WIDTH && Math.abs(otherY - top) < canvas.HEIGHT + 8);
    while (taken(place)) place = [place[0], place[1] + canvas.ROW];
    return place;
  }

  function removeNode(id) {
    text.remove(id);
    board.choose(null);
    const last = text.model().nodes.at(-1);
    if (last) board.focus(last.id);
    else form.querySelector(".kinds button").focus();
  }

  function duplicate(id) {
    const copy = freeId(id);
    spots.set(copy, beside({ id }, false));
    if (text.duplicate(id, copy)) board.choose({ node: copy });
  }

  function rename(id, next) {
    if (!next || next === id) return;
    spots.set(next, spots.get(id));
    if (text.rename(id, next)) board.choose({ node: next }, { quietly: true }); // the panel stays as it is
    openConnections();
  }

  function connect(source, handle, target) {
    text.connect({ source, handle, target, tool: nodeOf(source).mode === "tool" });
    openConnections();
  }

  function disconnect(index) {
    text.disconnect(index);
    if (board.choice()?.edge === undefined) openConnections();
    else board.choose(null);
  }

  // --- what is shown

  const board = canvas.create(document.getElementById("canvas"), { titleOf, chosen: openPanel, moved: keepSpots, connected: connect, removed: removeNode });

  function keepSpots() {
    canvas.keepPlaces(form.dataset.workflow, text.model().nodes.map((node) => [node.id, spots.get(node.id)]));
  }

  function placed(places) {
    for (const [id, [column, row]] of Object.entries(places)) {
      if (!spots.has(id)) spots.set(id, [column * canvas.COLUMN, row * canvas.ROW]);
    }
    text.model().nodes.forEach((node, index) => { if (!spots.has(node.id)) spots.set(node.id, [index * canvas.COLUMN, 0]); });
  }

  function marks() {
    const found = {};
    for (const fault of checked.errors) for (const id of fault.node_ids) ((found[id] ??= { faults: [] }).faults.push(fault));
    return found;
  }

  function draw() {
    if (checked.places) board.show(text.model(), spots, marks());
  }

  function changed(readable) {
    const may = text.may();
    document.getElementById("undo").disabled = !may.undo;
    document.getElementById("redo").disabled = !may.redo;
    if (readable) {
      const { name, team, nodes } = text.model();
      if (document.activeElement !== nameField) nameField.value = name;
      if (![...teamField.options].some((each) => each.value === team)) teamField.add(new Option(team, team));
      teamField.value = team;
      startButton.hidden = nodes.some((node) => node.kind === "entrypoint");
      if (nodes.every((node) => spots.has(node.id))) draw(); // else once the service has said where they are
    }
    verdict.dataset.checking = "";
    clearTimeout(timer);
    timer = setTimeout(check, checked.places ? CHECK_AFTER_MS : 0);
  }

  function travel(act) {
    act();
    openPanel();
  }

  async function check() {
    const number = ++asked;
    let answer;
    try {
      const response = await fetch("/console/workflows/check", { method: "POST", headers: token, body: new URLSearchParams({ definition: area.value, workflow: form.dataset.workflow }) });
      if (response.redirected) { location.reload(); return; }
      if (!response.ok) throw new Error(String(response.status));
      answer = await response.json();
    } catch {
      verdict.className = "status failed";
      verdict.textContent = "not checked: the service cannot be reached";
      placed({});
      draw();
      return;
    }
    if (number !== asked) return;
    delete verdict.dataset.checking;
    if (answer.unreadable) {
      verdict.className = "status failed";
      verdict.textContent = "cannot be read";
      list(answer.unreadable.map((message) => ({ message, node_ids: [] })), []);
      return;
    }
    checked = answer;
    placed(checked.places);
    const count = checked.errors.length;
    verdict.className = count ? "status failed" : "status approved";
    verdict.textContent = count === 0 ? "valid" : count === 1 ? "1 fault" : `${count} faults`;
    list(checked.errors, checked.warnings);
    draw();
    tellFaults();
  }

  function list(errors, warnings) {
    told.replaceChildren();
    for (const [faults, style, title] of [[errors, "flash", errors.length === 1 ? "1 thing is wrong." : `${errors.length} things are wrong.`], [warnings, "warn", "Valid but unusual."]]) {
      if (!faults.length) continue;
      const box = make("div", style, told);
      make("strong", "", box, title);
      const items = make("ul", "", box);
      for (const fault of faults) {
        const item = make("li", "", items);
        if (fault.node_ids.length) make("strong", "mono", item, `${fault.node_ids.join(", ")}: `);
        item.append(fault.message);
        if (fault.code) make("small", "", item, ` ${fault.path} · ${fault.code}`);
      }
    }
  }

  function tellFaults() {
    const id = chosenId();
    for (const tell of tellers.values()) tell("");
    const rest = panel.querySelector("[data-rest]");
    if (!rest) return;
    rest.replaceChildren();
    for (const fault of checked.errors.filter((each) => each.node_ids.includes(id))) {
      const path = fault.node_ids[0] === id ? fault.path.match(/^nodes\.\d+\.config\.(.+)$/)?.[1] ?? "" : "";
      let steps = path.split(".");
      while (steps.length && !tellers.has(steps.join("."))) steps = steps.slice(0, -1);
      if (steps.length) tellers.get(steps.join("."))(fault.message);
      else make("p", "fault", rest, fault.message);
    }
  }

  // --- the panel

  function openPanel() {
    panel.replaceChildren();
    tellers = new Map();
    const choice = board.choice();
    canvas.sheet(panel, Boolean(choice));
    if (choice?.node && nodeOf(choice.node)) nodePanel(nodeOf(choice.node));
    else if (choice?.edge !== undefined && text.model().edges[choice.edge]) wirePanel(text.model().edges[choice.edge]);
    else helpPanel();
    tellFaults();
  }

  function button(parent, label, act, style = "plain") {
    const made = make("button", style, parent, label);
    made.addEventListener("click", act);
    return made;
  }

  const chosenId = () => board.choice()?.node;

  function nodePanel(node) {
    const kind = formOf(node);
    const head = make("div", "panel-head", panel);
    canvas.icon(node.kind, make("span", `tile ${node.kind}`, head));
    make("h2", "", head, kind?.title ?? node.kind);
    button(head, "Close", () => { const id = chosenId(); board.choose(null); board.focus(id); });
    make("p", "hint", panel, kind?.hint ?? "This version of Dragoman does not know this kind.");
    make("div", "", panel).dataset.rest = "";
    const label = make("label", "", panel, "Id");
    label.htmlFor = "node-id";
    const id = make("input", "mono", panel);
    id.id = "node-id";
    id.value = node.id;
    id.autocomplete = "off";
    id.spellcheck = false;
    id.addEventListener("change", () => rename(chosenId(), id.value.trim()));
    if (kind) {
      canvasForms.fields(panel, kind.schema, node.config, { choices, tellers, set: (path, value) => text.setConfig(chosenId(), path, value) });
      panel.querySelectorAll("[id^='config.']").forEach((each, index) => { if (!index) each.dataset.first = ""; });
    }
    make("section", "connections", panel).setAttribute("aria-label", "Connections");
    openConnections();
    const actions = make("div", "actions", panel);
    button(actions, "Duplicate", () => duplicate(chosenId()), "second");
    button(actions, "Delete node", () => removeNode(chosenId()), "danger");
  }

  function openConnections() {
    const holder = panel.querySelector(".connections");
    const node = nodeOf(chosenId());
    if (!holder || !node) return;
    holder.replaceChildren();
    make("h3", "", holder, "Connections");
    const entries = make("ul", "plain-list", holder);
    for (const edge of text.model().edges.filter((each) => each.source === node.id || each.target === node.id)) {
      const item = make("li", "", entries);
      const out = edge.source === node.id;
      const other = out ? edge.target : edge.source;
      const what = isToolWire(edge) ? (out ? "tool of" : "has the tool") : out ? (edge.source_handle ? `when ${edge.source_handle}, to` : "to") : "from";
      make("span", "", item, `${what} `);
      button(item, other, () => { board.choose({ node: other }); board.focus(other); });
      button(item, "Remove", () => disconnect(edge.index)).setAttribute("aria-label", `Remove the connection ${what} ${other}`);
    }
    const targets = text.model().nodes.filter((each) => each.id !== node.id && (node.mode === "tool" ? each.kind === "agent" : each.mode !== "tool" && each.kind !== "entrypoint"));
    if (!targets.length) return;
    const line = make("div", "connect", holder);
    const handles = handlesOf(node);
    const handle = handles.length > 1 ? chooser(line, "When", handles) : null;
    const target = chooser(line, node.mode === "tool" ? "Give to" : "Connect to", targets.map((each) => each.id));
    button(line, "Connect", () => connect(node.id, handle ? handle.value : handles[0], target.value), "second");
  }

  function chooser(parent, title, entries) {
    const holder = make("div", "", parent);
    const label = make("label", "", holder, title);
    const select = make("select", "", holder);
    select.id = label.htmlFor = `connect-${title.toLowerCase().replace(" ", "-")}`;
    for (const each of entries) make("option", "", select, each).value = each;
    return select;
  }

  function wirePanel(edge) {
    const head = make("div", "panel-head", panel);
    make("h2", "", head, isToolWire(edge) ? "Tool" : "Connection");
    button(head, "Close", () => board.choose(null));
    make("p", "", panel, isToolWire(edge) ? `${edge.source} is a tool of ${edge.target}.` : `From ${edge.source}${edge.source_handle ? ` (${edge.source_handle})` : ""} to ${edge.target}.`);
    button(panel, "Remove", () => disconnect(edge.index), "danger");
  }

  function helpPanel() {
    make("h2", "", panel, "Build the workflow");
    make("p", "hint", panel, "Add a node above: it comes behind the chosen one, and a tool goes to the chosen agent. Or drag it to its place. Pull a wire from the edge of a node to another node.");
    const keys = make("dl", "keys", panel);
    for (const [key, does] of [["Arrows", "go from node to node"], ["Enter", "choose a node"], ["Alt + arrow", "move a node"], ["Del", "delete a node"], ["+  −  0", "zoom, fit"], ["Ctrl Z", "undo"], ["Ctrl S", "save"]]) {
      const line = make("div", "", keys);
      make("kbd", "", make("dt", "", line), key);
      make("dd", "", line, does);
    }
    button(panel, "Tidy up", tidy, "second");
  }

  function tidy() {
    spots = new Map();
    canvas.keepPlaces(form.dataset.workflow, null);
    placed(checked.places ?? {});
    draw();
    board.fit();
  }

  // --- the bar, the palette, keys

  for (const [title, mode] of [["Steps", "normal"], ["Tools", "tool"]]) {
    const group = make("div", "kind-group", form.querySelector(".kinds"));
    make("span", "hint", group, title);
    for (const kind of forms.filter((each) => each.mode === mode)) {
      const made = make("button", `kind ${kind.kind}`, group);
      canvas.icon(kind.kind, make("span", `tile ${kind.kind}`, made));
      made.append(kind.title);
      made.title = kind.hint;
      made.draggable = true;
      if (kind.kind === "entrypoint") startButton = made;
      made.addEventListener("click", () => addNode(kind));
      made.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", `${kind.kind} ${kind.mode}`));
    }
  }
  board.area.addEventListener("dragover", (event) => event.preventDefault());
  board.area.addEventListener("drop", (event) => {
    event.preventDefault();
    const kind = forms.find((each) => `${each.kind} ${each.mode}` === event.dataTransfer.getData("text/plain"));
    const [x, y] = board.onPlane(event);
    if (kind) addNode(kind, [x - canvas.WIDTH / 2, y - canvas.HEIGHT / 2]);
  });

  function see(canvasShown) {
    document.getElementById("canvas-view").hidden = !canvasShown;
    document.getElementById("text-view").hidden = canvasShown;
    document.getElementById("see-canvas").setAttribute("aria-pressed", String(canvasShown));
    document.getElementById("see-text").setAttribute("aria-pressed", String(!canvasShown));
    if (canvasShown) openPanel();
  }
  document.getElementById("see-canvas").addEventListener("click", () => see(true));
  document.getElementById("see-text").addEventListener("click", () => see(false));
  document.getElementById("undo").addEventListener("click", () => travel(text.undo));
  document.getElementById("redo").addEventListener("click", () => travel(text.redo));
  nameField.addEventListener("change", () => text.setName(nameField.value.trim()));
  teamField.addEventListener("change", () => text.setTeam(teamField.value));

  form.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      event.target.blur(); // which tells the change
      event.target.focus();
    }
    if (!event.ctrlKey && !event.metaKey) return;
    const key = event.key.toLowerCase();
    if (key === "s") { event.preventDefault(); document.activeElement.blur(); form.requestSubmit(); }
    else if (typing) return;
    else if (key === "z" && !event.shiftKey) { event.preventDefault(); travel(text.undo); }
    else if (key === "y" || key === "z") { event.preventDefault(); travel(text.redo); }
  });

  if (form.dataset.workflow === "new") {
    canvas.keepPlaces("new", null); // of a draft that was left
    form.addEventListener("htmx:after:request", ({ detail }) => {
      const saved = detail.ctx.hx.redirect?.split("/").pop();
      const kept = canvas.keptPlaces("new");
      if (saved && kept.size) canvas.keepPlaces(saved, kept);
    });
  } else spots = canvas.keptPlaces(form.dataset.workflow);
  text.refresh();
  openPanel();
})();
