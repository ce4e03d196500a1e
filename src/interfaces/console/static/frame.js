// The frame of every page: relative times, copying, the menu of small screens, messages, and a lost connection.
"use strict";
(() => {
  const OLDEST_S = 45 * 86400;
  const DAY_S = 86400;

  // To the hour up to two days: what ends in 23 h does not end "tomorrow". `left` is for what lasts until then.
  function relative(moment, left) {
    const seconds = (moment - Date.now()) / 1000;
    const length = Math.abs(seconds);
    const minutes = Math.max(1, Math.round(length / 60));
    const hours = Math.round(length / 3600);
    const told = minutes < 60 ? `${minutes} min` : hours < 48 ? `${hours} h` : `${Math.round(length / DAY_S)} days`;
    if (seconds <= 0) return (left ? "until " : "") + (length < 50 ? "just now" : `${told} ago`);
    if (length < 50) return left ? "for less than a minute" : "in a moment";
    return left ? `for another ${told}` : `in ${told}`;
  }

  // The server writes absolute times; they stay as the title.
  function tellTimes() {
    for (const time of document.querySelectorAll("time[datetime]:not([data-absolute])")) {
      const moment = Date.parse(time.dateTime);
      if (!moment || Math.abs(moment - Date.now()) > OLDEST_S * 1000) continue;
      if (!time.title) time.title = `${time.textContent} UTC`;
      const text = relative(moment, "left" in time.dataset);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  function countWaiting() {
    const waiting = document.getElementById("badge-inbox")?.firstChild?.textContent.trim();
    const title = document.title.replace(/^\(\S+\) /, "");
    document.title = waiting ? `(${waiting}) ${title}` : title;
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    const text = button.dataset.text ?? source.value;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without the right to write there (a page over plain http elsewhere): it is marked, to be copied by keyboard.
      source?.focus();
      source?.select?.();
      if (!source) window.prompt("Copy:", text);
    }
  }

  function toast(kind, ...texts) {
    const message = document.createElement("div");
    message.className = kind;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "plain";
    close.dataset.dismiss = "";
    close.setAttribute("aria-label", "Dismiss");
    close.textContent = "×";
    message.append(close, ...texts);
    return message;
  }

  function tell(title, detail) {
    const strong = document.createElement("strong");
    strong.textContent = `${title}.`;
    document.getElementById("flash").replaceChildren(toast("flash", strong, ` ${detail}`));
  }

  // What was changed is said until it is dismissed, or pushed out by what was changed after it.
  const TOAST = "dragoman-toast";
  const MOST_TOASTS = 3;
  function say(sentence) {
    const said = document.getElementById("toasted");
    said.append(toast("toast", sentence));
    while (said.children.length > MOST_TOASTS) said.firstElementChild.remove();
  }

  // The page that the answer leads to says it.
  function sayAfter(response) {
    const sentence = response.headers.get("Toast");
    if (!sentence) return;
    if (response.headers.get("HX-Redirect")) sessionStorage.setItem(TOAST, sentence);
    else say(sentence);
  }

  function sayBefore() {
    const sentence = sessionStorage.getItem(TOAST);
    sessionStorage.removeItem(TOAST);
    if (sentence) say(sentence);
  }

  function connected(isConnected) {
    document.getElementById("offline").hidden = isConnected;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.copy !== undefined) copy(button);
    else if (button.dataset.dismiss !== undefined) button.closest(".flash, .toast").remove();
    else if (button.dataset.palette !== undefined) search();
    else if (button.classList.contains("menu")) {
      const open = document.body.classList.toggle("open");
      button.setAttribute("aria-expanded", String(open));
    }
  });

  const palette = document.getElementById("palette");
  const find = document.getElementById("find");

  function search() {
    if (palette.open) return;
    palette.showModal();
    find.value = "";
    find.focus();
    find.dispatchEvent(new CustomEvent("palette-opened"));
  }

  // Up and down lead through what was found; Enter in the field takes the first, once what is shown was found for its text.
  let taken = false;
  function take() {
    if (!taken || palette.querySelector("[data-for]")?.dataset.for !== find.value) return;
    taken = false;
    palette.querySelector("#found a")?.click();
  }

  function walk(event) {
    const links = [...palette.querySelectorAll("#found a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (links[at + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? links[at - 1] : find).focus();
    else if (event.key === "Enter" && at < 0) {
      taken = true;
      take();
    } else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if (!palette) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      search();
    }
  });
  palette?.addEventListener("keydown", walk);
  palette?.addEventListener("htmx:after:swap", take);
  find?.addEventListener("input", () => { taken = false; });
  palette?.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });

  document.addEventListener("change", (event) => {
    if (event.target.dataset?.all === undefined) return;
    for (const box of event.target.form.querySelectorAll("input[type=checkbox]")) box.checked = event.target.checked;
  });

  const changes = (event) => (event.detail?.ctx?.request?.method ?? "GET") !== "GET";

  // What was not chosen is not asked about.
  document.addEventListener("htmx:confirm", (event) => {
    const chosen = event.target.dataset?.of;
    if (!chosen || document.querySelector(`${chosen} td input[type=checkbox]:checked`)) return;
    event.preventDefault();
    event.detail.dropRequest();
    tell("Nothing is chosen", "Choose in the list first.");
  });

  // An error stays until it is dismissed, or until something else is tried.
  document.addEventListener("htmx:before:request", (event) => {
    if (changes(event)) document.getElementById("flash").replaceChildren();
  });
  document.addEventListener("htmx:error", (event) => {
    if (!event.detail?.ctx || event.detail.ctx.response) return; // no request, or the service answered
    connected(false);
    if (changes(event)) tell("Not sent", "The service cannot be reached. Try again once the connection is back.");
  });
  document.addEventListener("htmx:after:request", (event) => {
    connected(true);
    if (event.detail?.ctx?.response) sayAfter(event.detail.ctx.response);
  });
  window.addEventListener("offline", () => connected(false));
  window.addEventListener("online", () => connected(true));

  // A click that was meant for a window in front of this one presses nothing that grants access.
  const SETTLES_MS = 1000;
  const settling = document.querySelectorAll("button[data-settles]");
  let settled;
  function settle() {
    clearTimeout(settled);
    for (const button of settling) button.disabled = true;
    settled = setTimeout(() => { for (const button of settling) button.disabled = false; }, SETTLES_MS);
  }
  if (settling.length) {
    window.addEventListener("focus", settle);
    document.addEventListener("visibilitychange", settle);
    settle();
  }

  function refreshed() {
    tellTimes();
    countWaiting();
  }
  document.addEventListener("htmx:after:swap", refreshed);
  setInterval(tellTimes, 20000);
  refreshed();
  sayBefore();
  window.frame = { search, tell, tellTimes };
})();
