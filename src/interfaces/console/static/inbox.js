// The inbox: an item opens beside the list, the next one after a decision, and keys lead through the list.
"use strict";
(() => {
  const list = document.getElementById("waiting");
  const detail = document.getElementById("detail");
  const inbox = document.getElementById("inbox");
  let chosen = detail.querySelector("[data-item]")?.dataset.item ?? null;
  let index = 0;
  let decided = false; // here, so that the next item opens

  const rows = () => [...list.querySelectorAll("[data-key]")];
  const rowOf = (key) => rows().find((row) => row.dataset.key === key);

  function mark() {
    for (const row of rows()) {
      const link = row.querySelector("a");
      if (row.dataset.key === chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    index = Math.max(0, rows().findIndex((row) => row.dataset.key === chosen));
  }

  async function open(key, focus) {
    chosen = key;
    mark();
    if (focus) rowOf(key)?.querySelector("a").focus();
    const url = `/console/inbox/detail?item=${encodeURIComponent(key)}`;
    await htmx.ajax("GET", url, { target: "#detail", swap: "innerHTML" });
    history.replaceState(null, "", `/console/inbox?item=${encodeURIComponent(key)}`);
  }

  function clear() {
    chosen = null;
    const empty = document.createElement("p");
    empty.className = "hint";
    empty.textContent = "Nothing is chosen.";
    detail.replaceChildren(empty);
  }

  // The item has left the list: by a decision here, or by one elsewhere.
  function left() {
    const next = rows()[Math.min(index, rows().length - 1)];
    if (decided) {
      decided = false;
      if (next) open(next.dataset.key, true);
      else clear();
      return;
    }
    if (detail.querySelector(".warn")) return;
    const told = document.createElement("p");
    told.className = "warn";
    told.textContent = "This does not wait any more: it was settled elsewhere.";
    detail.prepend(told);
    for (const button of detail.querySelectorAll("[data-act]")) button.disabled = true;
  }

  for (const event of ["item-settled", "workflow-changed", "server-changed"]) {
    document.body.addEventListener(event, () => { decided = true; });
  }

  document.addEventListener("htmx:after:swap", (event) => {
    if (event.target !== list) return;
    if (chosen && !rowOf(chosen)) left();
    else if (!chosen && rows().length && !detail.querySelector("[data-item], [data-gone]")) open(rows()[0].dataset.key, false);
    else mark();
  });

  list.addEventListener("click", (event) => {
    const link = event.target.closest("li a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link.closest("[data-key]").dataset.key, true);
  });

  function step(by) {
    const all = rows();
    const next = all[Math.min(Math.max(index + by, 0), all.length - 1)];
    if (next) open(next.dataset.key, true);
  }

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    x: () => rowOf(chosen)?.querySelector("input")?.click(),
    a: (repeats) => decide("a", repeats),
    d: (repeats) => decide("d", repeats),
  };

  // Only about what a person sees: not while the chosen item still loads, and not by a key held down.
  function decide(act, repeats) {
    if (repeats || detail.querySelector("[data-item]")?.dataset.item !== chosen) return;
    detail.querySelector(`[data-act=${act}]`)?.click();
  }

  // Only with the focus in the inbox, and not while one writes (WCAG 2.1.4).
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !inbox.contains(document.activeElement)) return;
    if (document.activeElement.matches("textarea, select, input:not([type=checkbox])")) return;
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key](event.repeat);
  });

  mark();
  if (document.activeElement === document.body) rowOf(chosen)?.querySelector("a").focus({ preventScroll: true });
})();
