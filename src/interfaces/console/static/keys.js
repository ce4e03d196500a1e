// Shortcuts of the keyboard on every page: where `g` and a letter lead, the search of the page, and steps through lists.
"use strict";
(() => {
  const SWITCHED = "dragoman-keys";
  const SEQUENCE_MS = 1500;
  const ROWS = "main tbody tr, main .items > li, main .conversations li, main .history > li";
  const help = document.getElementById("keys-help");
  const on = document.getElementById("keys-on");
  let begun = 0; // when `g` was pressed

  const isOn = () => localStorage.getItem(SWITCHED) !== "off";
  const isShown = (element) => element.checkVisibility();

  function showHelp() {
    on.checked = isOn();
    help.showModal();
  }

  function search() {
    const field = [...document.querySelectorAll("main input[type=search]")].find(isShown);
    if (!field) {
      window.frame.search();
      return;
    }
    field.focus();
    field.select();
  }

  // The link that a row is about: its first one.
  function step(by) {
    const links = [...document.querySelectorAll(ROWS)].map((row) => row.querySelector("a[href]")).filter((link) => link && isShown(link));
    const row = document.activeElement.closest(ROWS);
    const at = links.findIndex((link) => row?.contains(link));
    const next = at < 0 ? links[by > 0 ? 0 : links.length - 1] : links[at + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  const keys = { "?": showHelp, "/": search, j: () => step(1), k: () => step(-1), g: () => { begun = Date.now(); } };

  function go(letter) {
    document.querySelector(`.side [data-go="${CSS.escape(letter)}"]`)?.click();
  }

  const writes = (element) => element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=submit])");

  // Not while one writes or a dialog is open, and only where they are switched on (WCAG 2.1.4).
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key)) return;
    if (!isOn() || writes(event.target) || document.querySelector("dialog[open]")) return;
    const isSecond = Date.now() - begun < SEQUENCE_MS;
    begun = 0;
    if (isSecond) go(event.key);
    else if (keys[event.key] && !(event.target.closest("#inbox") && "jk".includes(event.key))) keys[event.key]();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys-help], [href='#keys-help']")) {
      event.preventDefault();
      document.getElementById("palette").close();
      showHelp();
    }
    else if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    else if (event.target === help) help.close();
  });
  on.addEventListener("change", () => localStorage.setItem(SWITCHED, on.checked ? "on" : "off"));
})();
