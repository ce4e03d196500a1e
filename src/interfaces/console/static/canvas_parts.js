// What the canvas of a workflow is made of: elements, icons, words of nodes, kept places, and the sheet of phones.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ICONS = {
    entrypoint: "M8 5l11 7-11 7z",
    agent: "M12 3l1.8 5.2L19 10l-5.2 1.8L12 17l-1.8-5.2L5 10l5.2-1.8zM18.5 15l.8 2.2 2.2.8-2.2.8-.8 2.2-.8-2.2-2.2-.8 2.2-.8z",
    http_request: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3.5 3 3.5 15 0 18M12 3c-3.5 3-3.5 15 0 18",
    mcp_server: "M5 4h14v7H5zM5 13h14v7H5zM8 7.5h.01M8 16.5h.01M12 7.5h4M12 16.5h4",
    native_tool: "M14.5 6.5a4 4 0 0 0-5.3 5L4 16.7 7.3 20l5.2-5.2a4 4 0 0 0 5-5.3l-2.6 2.6-2.4-.6-.6-2.4z",
    transform: "M9 4C5 4 9 11 4 12c5 1 1 8 5 8M15 4c4 0 0 7 5 8-5 1-1 8-5 8",
    condition: "M6 4v16M6 12h5c5 0 2-6 7-6M6 12h5c5 0 2 6 7 6M16 4l2.5 2L16 8M16 16l2.5 2-2.5 2",
    human_input: "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c0-4 3-6 7-6s7 2 7 6",
  };
  const SYMBOLS = { pending: "○", running: "▶", waiting: "?", ready: "◆", succeeded: "✓", failed: "✕", skipped: "–", cancelled: "■" };

  function make(name, className, parent, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    if (name === "button") made.type = "button";
    parent?.append(made);
    return made;
  }

  function shape(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent?.append(made);
    return made;
  }

  function icon(kind, parent) {
    const drawn = shape("svg", { class: `icon ${kind}`, viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, parent);
    shape("path", { d: ICONS[kind] ?? "M5 5h14v14H5z" }, drawn);
    return drawn;
  }

  // The ways out of a node; an empty handle is the only one.
  function handlesOf(node) {
    if (node.kind !== "condition") return [""];
    const { cases, expression, otherwise } = node.config;
    if (expression || !Array.isArray(cases)) return ["true", "false"];
    return [...cases.map((each) => String(each?.handle ?? "")), String(otherwise || "else")];
  }

  // Its kind, and what tells it from others of the kind.
  function title(node, kind) {
    const { agent, server, call, tool, url, expression, prompt } = node.config;
    const main = [agent, typeof server === "object" ? server?.slug : server, call, typeof tool === "object" ? tool?.name : tool, url, expression, prompt].filter((each) => typeof each === "string");
    return [kind, main.join(" ")].filter(Boolean).join(" · ");
  }

  // Where a person moved nodes, in this browser.
  const keyOf = (workflow) => `dragoman-canvas ${workflow}`;
  function keptPlaces(workflow) {
    try { return new Map(Object.entries(JSON.parse(localStorage.getItem(keyOf(workflow))) ?? {})); } catch { return new Map(); }
  }
  function keepPlaces(workflow, spots) {
    try {
      if (spots) localStorage.setItem(keyOf(workflow), JSON.stringify(Object.fromEntries(spots)));
      else localStorage.removeItem(keyOf(workflow));
    } catch { /* they are computed next time */ }
  }

  const isToolWire = (edge) => edge.target_handle === "tools";

  // On a phone what is known of a chosen node or wire is a sheet at the foot of the screen, below the canvas.
  function sheet(panel, isOpen) {
    if (isOpen && !panel.hasAttribute("data-sheet") && matchMedia("(max-width: 48rem)").matches) document.getElementById("canvas").scrollIntoView();
    panel.toggleAttribute("data-sheet", isOpen);
  }

  window.canvasParts = { SYMBOLS, handlesOf, icon, isToolWire, keepPlaces, keptPlaces, make, shape, sheet, title };
})();
