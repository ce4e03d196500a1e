// Lists of rows in forms: adding one and taking one away. What is shown live beside them.
"use strict";
(() => {
  let made = 0;

  function changed(list) {
    list.closest("form").dispatchEvent(new CustomEvent("rows-changed"));
  }

  function add(button) {
    const list = document.getElementById(button.dataset.to);
    const template = document.getElementById(button.dataset.add);
    // Ids have to be new in this form, also among rows that came back from the service.
    made += 1;
    const row = `n${Date.now().toString(36)}${made}`;
    const holder = document.createElement("template");
    holder.innerHTML = template.innerHTML.replaceAll("new0row", row);
    const item = holder.content.firstElementChild;
    list.append(item);
    item.querySelector("input, select, textarea").focus();
    changed(list);
  }

  function remove(button) {
    const item = button.closest("[data-row]");
    const list = item.parentElement;
    const next = item.nextElementSibling || item.previousElementSibling;
    item.remove();
    const target = next ? next.querySelector("input") : document.querySelector(`[data-to="${list.id}"]`);
    target.focus();
    changed(list);
  }

  // What is shown while one writes is not asked for any more once the form is sent: the page may be on its way to another.
  document.addEventListener("submit", (event) => {
    const live = event.target.querySelector("[data-live]");
    if (!live) return;
    event.target.dataset.sending = "";
    live.dispatchEvent(new CustomEvent("htmx:abort"));
  });

  document.addEventListener("htmx:before:request", (event) => {
    if (event.target.matches?.("[data-live]") && event.target.closest("[data-sending]")) event.preventDefault();
  });

  document.addEventListener("htmx:after:swap", () => {
    for (const form of document.querySelectorAll("[data-sending]")) delete form.dataset.sending;
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.add) add(button);
    else if (button.hasAttribute("data-remove")) remove(button);
  });
})();
