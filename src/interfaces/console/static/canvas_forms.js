// Forms of the canvas: fields made from the JSON Schema of a kind of nodes. `set` gets the path and the value of each changed field.
"use strict";
(() => {
  const { make } = canvas;
  const ALWAYS = 2; // so many fields that are not required are shown unfolded
  const FOLDED = new Set(["join", "retry", "timeout_s"]);

  function yamlOf(value) {
    return value === undefined || value === null ? "" : yaml.stringify(value, { version: "1.1", lineWidth: 0 }).trimEnd();
  }

  // What is shown of a value, by the schema of its field.
  function shown(field, value) {
    if (value === undefined || value === null) return "";
    if (field.format === "names") return Array.isArray(value) ? value.join("\n") : String(value);
    if (field.format === "yaml") return yamlOf(value);
    return typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
  }

  // The value of what was entered; undefined: none. Throws what is wrong.
  function entered(field, text) {
    if (!text.trim()) return undefined;
    if (field.format === "names") return text.split("\n").map((line) => line.trim()).filter(Boolean);
    if (field.format === "yaml") return yaml.parse(text, { version: "1.1" });
    if (field.format === "template") {
      if (text.trim().startsWith("{{")) return text;
      try { return JSON.parse(text); } catch { return text; }
    }
    if (field.type === "integer" || field.type === "number") {
      if (Number.isNaN(Number(text))) throw new Error("must be a number");
      return Number(text);
    }
    return text;
  }

  function options(select, entries, value) {
    for (const each of entries.includes(value) ? entries : [...entries, value].filter(Boolean)) {
      const option = make("option", "", select, each);
      option.value = each;
      option.selected = each === value;
    }
  }

  function control(field, id, value, { choices, required }) {
    if (field.enum || field.choices) {
      const select = make("select");
      const nothing = make("option", "", select, field.default ?? "Choose …");
      nothing.value = "";
      options(select, (field.enum ?? choices[field.choices]).filter((each) => each !== field.default || each === value), value === undefined ? "" : String(value));
      return select;
    }
    if (field.type === "boolean") {
      const tick = make("input");
      tick.type = "checkbox";
      tick.checked = value === true;
      return tick;
    }
    const text = shown(field, value);
    const large = ["lines", "template", "yaml", "names"].includes(field.format);
    const made = make(large ? "textarea" : "input");
    if (large) made.rows = Math.min(12, Math.max(required ? 3 : 2, text.split("\n").length));
    if (large && field.format !== "names") made.classList.add("mono");
    made.spellcheck = false;
    made.autocomplete = "off";
    made.value = text;
    return made;
  }

  function described(made, id) {
    made.setAttribute("aria-describedby", [made.getAttribute("aria-describedby"), id].filter(Boolean).join(" "));
  }

  // `faults` has sentences by path.
  function row(field, path, value, context) {
    const id = `config.${path}`;
    const holder = make("div", field.type === "boolean" ? "field tick" : "field");
    const made = control(field, id, value, context);
    made.id = id;
    const label = make("label", "", null, field.title);
    label.htmlFor = id;
    if (context.required) make("span", "hint", label, " (required)");
    holder.append(...(field.type === "boolean" ? [made, label] : [label, made]));
    if (field.description) {
      make("p", "hint", holder, field.description).id = `${id}-hint`;
      described(made, `${id}-hint`);
    }
    const fault = make("p", "fault", holder);
    fault.id = `${id}-fault`;
    const tell = (text) => {
      fault.textContent = text;
      if (text) { made.setAttribute("aria-invalid", "true"); described(made, fault.id); }
      else { made.removeAttribute("aria-invalid"); }
    };
    context.tellers.set(path, tell);
    made.addEventListener("change", () => {
      let next;
      try {
        next = field.type === "boolean" ? made.checked || undefined : entered(field, made.value);
      } catch (error) {
        tell(error.message);
        return;
      }
      tell("");
      context.set(path.split("."), next);
    });
    return holder;
  }

  // The fields of `schema` with the values of `config`. 
  function fields(parent, schema, config, { choices, set, tellers, prefix = "" }) {
    const folded = make("details", "more", null);
    make("summary", "", folded, "More");
    let optional = 0;
    for (const [name, field] of Object.entries(schema.properties)) {
      const path = prefix + name;
      const value = config?.[name];
      const required = schema.required?.includes(name) ?? false;
      const present = value !== undefined;
      const hidden = !prefix && !required && !present && (FOLDED.has(name) || optional >= ALWAYS);
      if (!required && !FOLDED.has(name)) optional += 1;
      const target = hidden || FOLDED.has(name) ? folded : parent;
      if (present && target === folded) folded.open = true;
      if (field.properties) {
        const group = make("fieldset", "", target);
        make("legend", "", group, field.title);
        fields(group, field, value, { choices, set, tellers, prefix: `${path}.` });
      } else target.append(row(field, path, value, { choices, set, tellers, required }));
    }
    if (folded.childElementCount > 1) parent.append(folded);
  }

  window.canvasForms = { fields };
})();
