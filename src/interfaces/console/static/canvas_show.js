// The canvas of a saved workflow, or of a run with the state of each node, renewed with the page. A chosen node is shown in detail, as
// the table of nodes has it.
"use strict";
(() => {
  const { make } = canvas;
  const shown = document.getElementById("shown");
  const panel = document.getElementById("panel");
  let byPerson = false;
  const graph = JSON.parse(shown.dataset.graph);
  const kept = canvas.keptPlaces(shown.dataset.workflow);
  const spots = new Map(Object.entries(graph.places).map(([id, [column, row]]) => [id, kept.get(id) ?? [column * canvas.COLUMN, row * canvas.ROW]]));
  const board = canvas.create(document.getElementById("canvas"), { titleOf: (node) => canvas.title(node, node.title), chosen: () => { byPerson = true; open(); } });

  function marks() {
    const found = document.getElementById("marks");
    return found ? JSON.parse(found.dataset.marks) : {};
  }

  function draw() {
    board.show(graph, spots, marks());
  }

  function open() {
    panel.replaceChildren();
    const choice = board.choice();
    const node = graph.nodes.find((each) => each.id === choice?.node);
    canvas.sheet(panel, byPerson && Boolean(choice));
    if (node) detail(node);
    else if (choice?.edge !== undefined) wire(graph.edges[choice.edge]);
    else {
      make("h2", "", panel, "Nodes");
      make("p", "hint", panel, "Choose a node to see what is known of it. Arrow keys lead from node to node; + − 0 zoom and fit.");
      const list = make("ul", "plain-list", panel);
      for (const each of graph.nodes) {
        const button = make("button", "plain", make("li", "", list), each.id);
        button.addEventListener("click", () => { board.choose({ node: each.id }); board.reveal(each.id); });
      }
    }
  }

  function wire(edge) {
    const head = make("div", "panel-head", panel);
    make("h2", "", head, canvas.isToolWire(edge) ? "Tool" : "Connection");
    make("button", "plain", head, "Close").addEventListener("click", () => board.choose(null));
    make("p", "", panel, canvas.isToolWire(edge) ? `${edge.source} is a tool of ${edge.target}.` : `From ${edge.source}${edge.source_handle ? ` (${edge.source_handle})` : ""} to ${edge.target}.`);
  }

  function detail(node) {
    const head = make("div", "panel-head", panel);
    canvas.icon(node.kind, make("span", `tile ${node.kind}`, head));
    make("h2", "", head, node.id);
    const close = make("button", "plain", head, "Close");
    close.addEventListener("click", () => { board.choose(null); board.focus(node.id); });
    make("p", "hint", panel, node.title);
    const row = document.getElementById(`node-${node.id}`);
    for (const cell of row?.querySelectorAll("[data-detail]") ?? []) {
      if (!cell.textContent.trim()) continue;
      make("h3", "", panel, cell.dataset.detail);
      const copy = make("div", "", panel);
      for (const part of cell.cloneNode(true).childNodes) copy.append(part.cloneNode(true));
      for (const part of copy.querySelectorAll("details")) part.open = true;
      for (const part of copy.querySelectorAll("[data-htmx-powered]")) part.removeAttribute("data-htmx-powered");
      htmx.process(copy); // its buttons act as those of the table
    }
    if (Object.keys(node.config).length) {
      make("h3", "", panel, "Configuration");
      const config = make("pre", "diff", panel, JSON.stringify(node.config, null, 2));
      config.tabIndex = 0;
      config.setAttribute("role", "group");
      config.setAttribute("aria-label", "Configuration");
    }
  }

  // Until a person chooses, the node is shown that failed or waits.
  function follow() {
    const states = marks();
    const node = ["failed", "waiting"].map((status) => graph.nodes.find((each) => states[each.id]?.status === status)).find(Boolean);
    if (byPerson || board.choice()?.node === node?.id) return;
    board.choose(node ? { node: node.id } : null, { quietly: true });
    if (node) board.reveal(node.id);
  }

  document.addEventListener("htmx:after:swap", () => {
    if (!document.getElementById("marks")) return;
    draw();
    follow();
    if (!panel.contains(document.activeElement)) open();
  });

  draw();
  follow();
  open();
})();
