// Forms: what the service found wrong is marked at its field; a chosen file fills a field of text.
"use strict";
(() => {
  function unmark(form) {
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      if (field.dataset.described !== undefined) field.setAttribute("aria-describedby", field.dataset.described);
      if (!field.getAttribute("aria-describedby")) field.removeAttribute("aria-describedby");
    }
    for (const told of form.querySelectorAll(".fault")) told.remove();
  }

  // `env.TOKEN` and `args.2` are shown at the field or group that has them.
  function fieldOf(path) {
    for (let steps = path.split("."); steps.length; steps = steps.slice(0, -1)) {
      const found = document.getElementById(steps.join("."));
      if (found) return found;
    }
    return null;
  }

  function mark(fault, index) {
    const field = fieldOf(fault.dataset.field);
    if (!field) return null;
    for (let around = field; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
    if (field.tagName === "FIELDSET") return null; // the list above the form says it
    const told = document.createElement("p");
    told.className = "fault";
    told.id = `fault-${index}`;
    told.textContent = fault.querySelector("span").textContent;
    field.after(told);
    if (field.dataset.described === undefined) field.dataset.described = field.getAttribute("aria-describedby") || "";
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${told.id} ${field.dataset.described}`.trim());
    return field;
  }

  document.addEventListener("htmx:before:request", (event) => {
    if (event.detail?.ctx?.request?.method !== "POST") return;
    const faults = document.getElementById("faults");
    if (!faults || !event.target.closest?.("form")) return;
    faults.replaceChildren();
    unmark(document);
  });

  document.addEventListener("htmx:after:swap", () => {
    const faults = document.querySelectorAll("#faults [data-field]:not([data-told])");
    const fields = [];
    faults.forEach((fault, index) => {
      fault.dataset.told = "";
      const field = mark(fault, index);
      if (field) fields.push(field);
    });
    if (fields.length) fields[0].focus();
    else if (faults.length) document.getElementById("faults").scrollIntoView({ block: "nearest" });
  });

  document.addEventListener("change", async (event) => {
    const filled = event.target.dataset?.fills;
    const file = filled && event.target.files[0];
    if (file) document.getElementById(filled).value = await file.text();
  });
})();
