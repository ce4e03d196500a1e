// The canvas of a workflow: its nodes and wires, moved, zoomed, fitted, with a map. Positions are set through style objects, which the
// content policy allows. Everything but moving is done by the keyboard, too: arrows lead from node to node, Alt and an arrow moves one.
"use strict";
(() => {
  const { SYMBOLS, handlesOf, icon, isToolWire, keepPlaces, keptPlaces, make, shape, sheet, title } = window.canvasParts;
  const WIDTH = 208;
  const HEIGHT = 72;
  const COLUMN = 272;
  const ROW = 112;
  const LEAST = 0.2;
  const LEGIBLE = 0.6;
  const MOST = 2;
  const DRAG_FROM = 4;

  function create(root, { titleOf, chosen = () => {}, moved = () => {}, connected = null, removed = null }) {
    const view = make("div", "canvas-area", root);
    const plane = make("div", "canvas-plane", view);
    const wires = shape("svg", { class: "canvas-wires", "aria-hidden": "true" }, plane);
    const list = make("ul", "canvas-nodes", plane);
    list.setAttribute("aria-label", "Nodes");
    const map = shape("svg", { class: "canvas-map", "aria-hidden": "true" }, root);
    const tools = make("div", "canvas-tools", root);
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", "Zoom");
    const scaled = make("span", "hint", null);
    const buttons = [["−", "Zoom out", () => zoom(1 / 1.25)], ["+", "Zoom in", () => zoom(1.25)], ["Fit", "Fit the whole workflow", () => fit()]];
    for (const [text, name, act] of buttons) {
      const button = make("button", "plain", tools, text);
      button.setAttribute("aria-label", name);
      button.title = name;
      button.addEventListener("click", act);
    }
    tools.append(scaled);

    let model = { nodes: [], edges: [] };
    let marks = {}; // by node id: { faults, status }
    let spots = new Map();
    let choice = null; // { node } or { edge }
    let at = { x: 24, y: 24, scale: 1 };
    const faces = new Map();
    let touched = false; // by a person: it is not fitted by itself any more

    const spot = (id) => spots.get(id) ?? [0, 0];
    const port = (node, index = 0, count = 1) => { const [x, y] = spot(node.id); return [x + WIDTH, y + (HEIGHT * (index + 1)) / (count + 1)]; };

    function place() {
      plane.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.scale})`;
      view.style.backgroundPosition = `${Math.round(at.x)}px ${Math.round(at.y)}px`;
      const gap = Math.round(32 * at.scale * (at.scale < 0.6 ? 2 : 1));
      view.style.backgroundSize = `${gap}px ${gap}px`;
      scaled.textContent = `${Math.round(100 * at.scale)} %`;
      drawMap();
    }

    function bounds() {
      const all = model.nodes.map((node) => spot(node.id));
      if (!all.length) return { x: 0, y: 0, width: WIDTH, height: HEIGHT };
      const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
      const [x, y] = [Math.min(...xs), Math.min(...ys)];
      return { x, y, width: Math.max(...xs) - x + WIDTH, height: Math.max(...ys) - y + HEIGHT };
    }

    // Not smaller than `least`; what does not fit then begins at the left.
    function fit(least = LEAST) {
      const box = bounds();
      const [width, height] = [view.clientWidth - 64, view.clientHeight - 112];
      const scale = Math.max(least, Math.min(1, width / box.width, height / box.height));
      const x = Math.max(16, (view.clientWidth - box.width * scale) / 2);
      const y = Math.max(16, (height + 64 - box.height * scale) / 2);
      at = { x: x - box.x * scale, y: y - box.y * scale, scale };
      place();
    }

    function zoom(by, x = view.clientWidth / 2, y = view.clientHeight / 2) {
      touched = true;
      const scale = Math.max(LEAST, Math.min(MOST, at.scale * by));
      at = { x: x - ((x - at.x) * scale) / at.scale, y: y - ((y - at.y) * scale) / at.scale, scale };
      place();
    }

    // What is outside is moved into view.
    function reveal(id) {
      const [x, y] = spot(id).map((each) => each * at.scale);
      const [left, top] = [at.x + x, at.y + y];
      const dx = Math.max(16 - left, 0) + Math.min(view.clientWidth - 16 - left - WIDTH * at.scale, 0);
      const dy = Math.max(16 - top, 0) + Math.min(view.clientHeight - 64 - top - HEIGHT * at.scale, 0);
      view.scrollTo(0, 0);
      if (dx || dy) { touched = true; at = { ...at, x: at.x + dx, y: at.y + dy }; place(); }
    }

    function drawMap() {
      const box = bounds();
      const seen = { x: -at.x / at.scale, y: -at.y / at.scale, width: view.clientWidth / at.scale, height: view.clientHeight / at.scale };
      const x = Math.min(box.x, seen.x);
      const y = Math.min(box.y, seen.y);
      const width = Math.max(box.x + box.width, seen.x + seen.width) - x;
      const height = Math.max(box.y + box.height, seen.y + seen.height) - y;
      map.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
      map.replaceChildren();
      for (const node of model.nodes) {
        const [left, top] = spot(node.id);
        shape("rect", { x: left, y: top, width: WIDTH, height: HEIGHT, rx: 16, class: `${node.kind} ${marks[node.id]?.status ?? ""} ${marks[node.id]?.faults?.length ? "faulty" : ""}` }, map);
      }
      shape("rect", { ...seen, class: "seen", "stroke-width": width / 90 }, map);
    }

    function curve([x, y], [toX, toY]) {
      const bend = Math.max(48, Math.abs(toX - x) / 2);
      return `M${x},${y} C${x + bend},${y} ${toX - bend},${toY} ${toX},${toY}`;
    }

    function drawWires() {
      const byId = new Map(model.nodes.map((node) => [node.id, node]));
      wires.replaceChildren();
      model.edges.forEach((edge, number) => {
        const [source, target] = [byId.get(edge.source), byId.get(edge.target)];
        if (!source || !target) return;
        const handles = handlesOf(source);
        const from = port(source, Math.max(0, handles.indexOf(edge.source_handle)), handles.length);
        const [x, y] = spot(target.id);
        const tool = isToolWire(edge);
        const to = [x - 2, y + HEIGHT * (tool ? 0.76 : target.kind === "agent" ? 0.38 : 0.5)];
        const state = tool ? "" : wireState(edge);
        const group = shape("g", { class: ["wire", tool && "tool", state, choice?.edge === number && "chosen"].filter(Boolean).join(" "), "data-wire": `${edge.source} ${edge.target}` }, wires);
        const line = curve(from, [to[0] - 8, to[1]]);
        const hit = shape("path", { class: "hit", d: line }, group);
        shape("path", { class: "line", d: line }, group);
        shape("path", { class: "head", d: tool ? `M${to[0] - 8},${to[1]} l5,-5 l5,5 l-5,5 z` : `M${to[0]},${to[1]} l-9,-5 v10 z` }, group);
        if (edge.source_handle && handles.length > 1) {
          shape("text", { x: from[0] + 10, y: from[1] - 5 }, group).textContent = edge.source_handle;
        }
        hit.addEventListener("click", () => choose({ edge: number }));
      });
      if (drag?.wire) shape("path", { class: "line pulled", d: curve(drag.from, drag.to) }, wires);
    }

    // A way that a run took, or did not take.
    function wireState(edge) {
      const from = marks[edge.source];
      if (!from?.status) return "";
      if (from.status !== "succeeded" || (from.handle && edge.source_handle && from.handle !== edge.source_handle)) return "untaken";
      return "taken";
    }

    function face(node) {
      const item = make("li", "node");
      item.dataset.node = node.id;
      const button = make("button", "face", item);
      const parts = { item, button, icon: make("span", "tile", button), name: null, what: null, how: null, faults: null, ports: make("span", "ports", item), kind: null };
      const text = make("span", "words", button);
      parts.name = make("span", "name", text);
      parts.what = make("span", "what", text);
      parts.how = make("span", "how", text);
      parts.faults = make("span", "count", button);
      button.addEventListener("click", () => { if (!dragged) choose({ node: node.id }); });
      button.addEventListener("focus", () => { roam(node.id); reveal(node.id); });
      return parts;
    }

    function roam(id) {
      for (const [each, parts] of faces) parts.button.tabIndex = each === id ? 0 : -1;
    }

    function dress(node) {
      const parts = faces.get(node.id);
      const mark = marks[node.id] ?? {};
      const faulty = mark.faults?.length ?? 0;
      parts.item.className = ["node", node.kind, node.mode === "tool" ? "as-tool" : "", mark.status ?? "", faulty ? "faulty" : "", choice?.node === node.id ? "chosen" : ""].filter(Boolean).join(" ");
      if (parts.kind !== node.kind) { parts.icon.replaceChildren(); icon(node.kind, parts.icon); parts.kind = node.kind; }
      parts.name.textContent = node.id;
      parts.what.textContent = titleOf(node);
      parts.how.textContent = mark.status ? `${SYMBOLS[mark.status]} ${mark.status}` : "";
      parts.faults.textContent = faulty ? `${faulty}` : "";
      if (faulty) make("span", "unseen", parts.faults, faulty === 1 ? " fault" : " faults");
      parts.button.setAttribute("aria-pressed", String(choice?.node === node.id));
      const [x, y] = spot(node.id);
      parts.item.style.transform = `translate(${x}px, ${y}px)`;
      parts.ports.replaceChildren();
      if (!connected) return;
      const handles = handlesOf(node);
      handles.forEach((handle, index) => {
        const out = make("span", node.mode === "tool" ? "port out tool" : "port out", parts.ports);
        out.dataset.handle = handle;
        out.title = node.mode === "tool" ? "Pull a wire to the agent that gets this tool" : `Pull a wire to the node that follows${handle ? ` when ${handle}` : ""}`;
        out.style.top = `${(100 * (index + 1)) / (handles.length + 1)}%`;
      });
    }

    function show(next, nextSpots, nextMarks, nextChoice = choice) {
      const first = !model.nodes.length;
      model = next;
      spots = nextSpots;
      marks = nextMarks;
      choice = nextChoice;
      const wanted = new Set(model.nodes.map((node) => node.id));
      for (const [id, parts] of faces) if (!wanted.has(id)) { parts.item.remove(); faces.delete(id); }
      for (const node of model.nodes) {
        if (!faces.has(node.id)) faces.set(node.id, face(node));
        dress(node);
      }
      const order = visual().map((node) => faces.get(node.id).item);
      if (order.some((item, index) => list.children[index] !== item)) {
        const held = document.activeElement;
        list.replaceChildren(...order);
        if (list.contains(held)) held.focus({ preventScroll: true });
      }
      if (![...faces.values()].some((parts) => parts.button.tabIndex === 0 && parts.item.isConnected) || !choice) roam(choice?.node ?? visual()[0]?.id);
      drawWires();
      if (first && !touched) fit(LEGIBLE); else drawMap();
    }

    // From left to right, then from top to bottom.
    function visual() {
      const seen = new Set();
      return [...model.nodes].filter((node) => !seen.has(node.id) && seen.add(node.id))
        .sort((one, other) => spot(one.id)[0] - spot(other.id)[0] || spot(one.id)[1] - spot(other.id)[1]);
    }

    function choose(next, { quietly = false } = {}) {
      choice = next;
      for (const node of model.nodes) dress(node);
      drawWires();
      if (!quietly) chosen(choice);
    }

    // Pointers: a node is dragged, a wire pulled, the plane moved; two fingers zoom.
    let drag = null;
    let dragged = false;
    const fingers = new Map();

    const inside = (event) => { const box = view.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const onPlane = (event) => { const [x, y] = inside(event); return [(x - at.x) / at.scale, (y - at.y) / at.scale]; };

    view.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      fingers.set(event.pointerId, inside(event));
      dragged = false;
      const item = event.target.closest("[data-node]");
      const pulled = event.target.closest(".port.out");
      const node = item && model.nodes.find((each) => each.id === item.dataset.node);
      if (pulled && connected) {
        const handles = handlesOf(node);
        const from = port(node, handles.indexOf(pulled.dataset.handle), handles.length);
        drag = { wire: true, node, handle: pulled.dataset.handle, from, to: from };
        view.setPointerCapture(event.pointerId);
        event.preventDefault();
      } else if (node) {
        drag = { node, start: onPlane(event), spot: spot(node.id) };
      } else {
        drag = { start: inside(event), at };
      }
    });
    view.addEventListener("pointermove", (event) => {
      if (fingers.size === 2 && fingers.has(event.pointerId)) { pinch(event); return; }
      if (!drag || !fingers.has(event.pointerId)) return;
      if (drag.wire) { drag.to = onPlane(event); drawWires(); return; }
      const [x, y] = drag.node ? onPlane(event) : inside(event);
      const [dx, dy] = [x - drag.start[0], y - drag.start[1]];
      if (!dragged && Math.hypot(dx, dy) < DRAG_FROM) return;
      if (!dragged) { dragged = true; view.setPointerCapture(event.pointerId); touched = true; }
      if (!drag.node) { at = { ...at, x: drag.at.x + dx, y: drag.at.y + dy }; place(); return; }
      if (!removed) return;
      spots.set(drag.node.id, [Math.round((drag.spot[0] + dx) / 8) * 8, Math.round((drag.spot[1] + dy) / 8) * 8]);
      dress(drag.node);
      drawWires();
      drawMap();
    });
    function release(event) {
      fingers.delete(event.pointerId);
      const ended = drag;
      drag = null;
      if (!ended) return;
      if (ended.wire) {
        const over = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-node]");
        drawWires();
        if (over && over.dataset.node !== ended.node.id) connected(ended.node.id, ended.handle, over.dataset.node);
      } else if (ended.node && dragged && removed) moved(ended.node.id);
      else if (!ended.node && !dragged && event.target === view) choose(null);
    }
    view.addEventListener("pointerup", release);
    view.addEventListener("pointercancel", release);

    function pinch(event) {
      drag = null;
      const distance = () => { const [[x, y], [toX, toY]] = [...fingers.values()]; return Math.hypot(toX - x, toY - y); };
      const before = distance();
      fingers.set(event.pointerId, inside(event));
      const [[x, y], [toX, toY]] = [...fingers.values()];
      if (before) zoom(distance() / before, (x + toX) / 2, (y + toY) / 2);
    }

    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), ...inside(event));
    }, { passive: false });

    map.addEventListener("pointerdown", (event) => {
      const box = map.viewBox.baseVal;
      const shown = map.getScreenCTM();
      const [x, y] = [(event.clientX - shown.e) / shown.a, (event.clientY - shown.f) / shown.d];
      if (!box.width) return;
      touched = true;
      at = { ...at, x: view.clientWidth / 2 - x * at.scale, y: view.clientHeight / 2 - y * at.scale };
      place();
    });

    list.addEventListener("keydown", (event) => {
      const id = event.target.closest("[data-node]")?.dataset.node;
      if (!id) return;
      const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
      if (event.key in steps) {
        event.preventDefault();
        const [x, y] = steps[event.key];
        if (event.altKey && removed) {
          spots.set(id, [spot(id)[0] + 24 * x, spot(id)[1] + 24 * y]);
          dress(model.nodes.find((node) => node.id === id));
          drawWires();
          reveal(id);
          moved(id);
          return;
        }
        const order = visual();
        const next = order[order.findIndex((node) => node.id === id) + x + y];
        if (next) focus(next.id);
      } else if (["Delete", "Backspace"].includes(event.key) && removed) {
        event.preventDefault();
        removed(id);
      } else if (event.key === "+") zoom(1.25);
      else if (event.key === "-") zoom(1 / 1.25);
      else if (event.key === "0") fit();
    });

    function focus(id) {
      faces.get(id)?.button.focus({ preventScroll: true });
    }

    new ResizeObserver(() => { if (view.clientWidth && !touched) fit(LEGIBLE); else drawMap(); }).observe(view);

    return { show, fit, focus, choose, reveal, onPlane, area: view, choice: () => choice };
  }

  window.canvas = { create, make, icon, sheet, title, handlesOf, isToolWire, keptPlaces, keepPlaces, WIDTH, HEIGHT, COLUMN, ROW };
})();
