// Forms with `data-unsaved`: the browser asks before a page is left with changes in them that were not saved.
"use strict";
(() => {
  const opened = new Map(); // what was in each form when it was opened or last saved, by its id

  const written = (value) => (value instanceof File ? value.name : value);
  // Without fields that have nothing in them, which the page may add.
  const contents = (form) => JSON.stringify([...new FormData(form)].map(([name, value]) => [name, written(value)]).filter(([, value]) => value !== ""));
  const forms = () => document.querySelectorAll("form[data-unsaved]");
  const isSave = (target, detail) => target.matches?.("form[data-unsaved]") && detail.ctx.request.method === "POST";
  const signedOut = (detail) => detail.ctx.hx?.redirect?.startsWith("/console/sign-in") ?? false;

  // A form that comes back from the service with faults has changes still.
  function note() {
    for (const form of forms()) if (!opened.has(form.id)) opened.set(form.id, contents(form));
  }

  document.addEventListener("htmx:after:request", ({ target, detail }) => {
    if (isSave(target, detail) && detail.ctx.response.status < 400 && !signedOut(detail)) opened.delete(target.id);
  });
  // Who stays instead of signing in has a button that works.
  document.addEventListener("htmx:finally:request", ({ target, detail }) => {
    if (isSave(target, detail) && signedOut(detail)) detail.ctx.keepIndicators = false;
  });
  document.addEventListener("htmx:after:swap", note);
  document.addEventListener("click", (event) => {
    const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey; // in another tab or window, or a download
    if (!isElsewhere && event.target.closest("a[data-discards]")) opened.clear();
  });
  window.addEventListener("beforeunload", (event) => {
    const field = document.activeElement;
    field?.blur(); // which tells a change that is being typed
    field?.focus({ preventScroll: true });
    if ([...forms()].some((form) => opened.has(form.id) && opened.get(form.id) !== contents(form))) event.preventDefault();
  });
  note();
})();
