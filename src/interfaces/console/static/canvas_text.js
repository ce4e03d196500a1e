// The text of a workflow as a document: changes are made in it, and its comments, order and style stay. YAML 1.1, as the service reads it.
"use strict";
(() => {
  const MAX_UNDONE = 200;
  const { isToolWire } = canvas;

  // Names may look like booleans: `true` is a way out of a condition.
  function nameOf(map, key) {
    const scalar = map.get(key, true);
    if (!yaml.isScalar(scalar) || scalar.value === null) return "";
    return typeof scalar.value === "string" ? scalar.value : scalar.source ?? String(scalar.value);
  }

  function configOf(item, doc) {
    const config = item.get("config");
    if (!yaml.isMap(config)) return {};
    const plain = config.toJS(doc);
    const cases = config.get("cases");
    if (yaml.isSeq(cases)) plain.cases = cases.items.filter(yaml.isMap).map((each) => ({ ...each.toJS(doc), handle: nameOf(each, "handle") }));
    if (config.has("otherwise")) plain.otherwise = nameOf(config, "otherwise");
    return plain;
  }

  // Nodes and edges with their index in the text.
  function read(doc) {
    const listed = (key) => (yaml.isSeq(doc.get(key)) ? doc.get(key).items : []).map((item, index) => ({ item, index })).filter(({ item }) => yaml.isMap(item));
    return {
      name: nameOf(doc, "name"),
      team: nameOf(doc, "team"),
      nodes: listed("nodes").map(({ item, index }) => ({ index, id: nameOf(item, "id"), kind: nameOf(item, "kind"), mode: nameOf(item, "mode") || "normal", config: configOf(item, doc) })),
      edges: listed("edges").map(({ item, index }) => ({ index, source: nameOf(item, "source"), target: nameOf(item, "target"), source_handle: nameOf(item, "source_handle"), target_handle: nameOf(item, "target_handle") || "input" })),
    };
  }

  function sequence(doc, key) {
    if (!yaml.isSeq(doc.get(key))) doc.set(key, doc.createNode([]));
    const found = doc.get(key);
    if (!found.items.length) found.flow = false;
    return found;
  }

  // `changed` is called when the text is another one.
  function create(area, changed) {
    const past = [];
    const future = [];
    let model = { name: "", team: "", nodes: [], edges: [] };

    function parsed() {
      const doc = yaml.parseDocument(area.value, { version: "1.1" });
      return doc.errors.length || !yaml.isMap(doc.contents) ? null : doc;
    }

    // A text that cannot be read leaves the model as it was.
    function refresh() {
      const doc = parsed();
      if (doc) model = read(doc);
      changed(doc !== null);
    }

    function written(doc) {
      return doc.toString({ lineWidth: 0, flowCollectionPadding: !/[{[]\w/.test(area.value), indentSeq: !/^\w+:\n- /m.test(area.value) });
    }

    function change(act, after = (text) => text) {
      const doc = parsed();
      if (!doc) return false;
      act(doc);
      remember(area.value);
      area.value = after(written(doc));
      refresh();
      return true;
    }

    function remember(before) {
      past.push(before);
      if (past.length > MAX_UNDONE) past.shift();
      future.length = 0;
    }

    function travel(from, to) {
      if (!from.length) return;
      to.push(area.value);
      area.value = from.pop();
      refresh();
    }

    const nodeOf = (id) => model.nodes.find((node) => node.id === id);

    function dropEdges(doc, unwanted) {
      for (const edge of model.edges.filter(unwanted).reverse()) doc.deleteIn(["edges", edge.index]);
    }

    function addEdge(doc, { source, handle = "", target, tool = false }) {
      const edge = { source, ...(handle && { source_handle: handle }), target, ...(tool && { target_handle: "tools" }) };
      sequence(doc, "edges").add(doc.createNode(edge));
    }

    // `undefined` removes the value, and what is empty without it.
    function setConfig(id, path, value) {
      change((doc) => {
        const whole = ["nodes", nodeOf(id).index, "config", ...path];
        for (let length = 3; value !== undefined && length < whole.length; length += 1) {
          const parent = whole.slice(0, length);
          if (!yaml.isMap(doc.getIn(parent))) doc.setIn(parent, doc.createNode({}));
        }
        if (value !== undefined) doc.setIn(whole, typeof value === "object" ? doc.createNode(value) : value);
        for (let length = whole.length; value === undefined && length > 2; length -= 1) {
          const found = doc.getIn(whole.slice(0, length));
          if (length < whole.length && !(yaml.isMap(found) && !found.items.length)) break;
          doc.deleteIn(whole.slice(0, length));
        }
      });
    }

    function add(node, edge) {
      return change((doc) => {
        sequence(doc, "nodes").add(doc.createNode(node));
        if (edge) addEdge(doc, edge);
      });
    }

    function duplicate(id, copy) {
      return change((doc) => {
        const made = doc.getIn(["nodes", nodeOf(id).index]).clone();
        made.set("id", copy);
        sequence(doc, "nodes").add(made);
      });
    }

    function remove(id) {
      change((doc) => {
        dropEdges(doc, (edge) => edge.source === id || edge.target === id);
        doc.deleteIn(["nodes", nodeOf(id).index]);
      });
    }

    // References in templates follow.
    function rename(id, next) {
      const references = new RegExp(`(\\{\\{\\s*)${id.replaceAll(/\W/g, "\\$&")}(?=[\\s.|}\\[])`, "g");
      return change((doc) => {
        doc.setIn(["nodes", nodeOf(id).index, "id"], next);
        for (const edge of model.edges) {
          for (const end of ["source", "target"]) if (edge[end] === id) doc.setIn(["edges", edge.index, end], next);
        }
      }, (text) => text.replace(references, `$1${next}`));
    }

    function connect(edge) {
      const same = (each) => each.source === edge.source && each.target === edge.target && each.source_handle === (edge.handle ?? "") && isToolWire(each) === (edge.tool ?? false);
      if (!model.edges.some(same)) change((doc) => addEdge(doc, edge));
    }

    // A new one comes behind the name; an empty one is the organization.
    function setTeam(team) {
      change((doc) => {
        if (!team) doc.delete("team");
        else if (doc.has("team")) doc.set("team", team);
        else doc.contents.items.splice(doc.contents.items.findIndex((pair) => String(pair.key) === "name") + 1, 0, doc.createPair("team", team));
      });
    }

    let before = area.value;
    area.addEventListener("focus", () => { before = area.value; });
    area.addEventListener("input", refresh);
    area.addEventListener("change", () => { remember(before); before = area.value; refresh(); });

    return {
      refresh, nodeOf, setConfig, setTeam, add, duplicate, remove, rename, connect,
      model: () => model,
      setName: (name) => change((doc) => doc.set("name", name)),
      disconnect: (index) => change((doc) => dropEdges(doc, (edge) => edge.index === index)),
      undo: () => travel(past, future),
      redo: () => travel(future, past),
      may: () => ({ undo: past.length > 0, redo: future.length > 0 }),
    };
  }

  window.canvasText = { create };
})();
