// Forms with `data-unsaved`: the browser asks before a page is left with changes in them that were not saved.
"use strict";
(() => {
  const opened = new Map(); // what was in each form when it was opened or last saved, by its id

  const contents = (form) => JSON.stringify([...new FormData(form)].map(([name, value]) => [name, value instanceof File ? value.name : value]));
  const forms = () => document.querySelectorAll("form[data-unsaved]");

  // A form that comes back from the service with faults has changes still.
  function note() {
    for (const form of forms()) if (!opened.has(form.id)) opened.set(form.id, contents(form));
  }

  document.addEventListener("htmx:after:request", ({ target, detail }) => {
    if (target.matches?.("form[data-unsaved]") && detail.ctx.request.method === "POST" && detail.ctx.response.status < 400) opened.delete(target.id);
  });
  document.addEventListener("htmx:after:swap", note);
  document.addEventListener("click", (event) => {
    if (event.target.closest("a[data-discards]")) opened.clear();
  });
  window.addEventListener("beforeunload", (event) => {
    if ([...forms()].some((form) => opened.has(form.id) && opened.get(form.id) !== contents(form))) event.preventDefault();
  });
  note();
})();
