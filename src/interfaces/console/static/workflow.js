// The page of a workflow run: each event of the run lets the page show its current state.
"use strict";
(() => {
  const TYPES = [
    "workflow.queued", "workflow.started", "workflow.requires_action", "workflow.resumed", "workflow.completed",
    "workflow.failed", "workflow.cancelled", "node.started", "node.retrying", "node.waiting", "node.resumed", "node.ready",
    "node.succeeded", "node.failed", "node.skipped", "node.cancelled",
  ];
  const connection = document.getElementById("connection");
  const state = document.getElementById("state");
  let seq = 0;
  let telling = false;
  let connected = false;

  function tell() {
    telling = false;
    document.body.dispatchEvent(new CustomEvent("workflow-changed"));
  }

  function take(message) {
    seq = Math.max(seq, JSON.parse(message.data).seq);
    if (telling) return;
    telling = true;
    // Many events come at once when a page opens: the page is renewed once for them.
    setTimeout(tell, 50);
  }

  function ended(status) {
    connection.textContent = `Ended: ${status}`;
  }

  async function begin() {
    // Once connected, the page asks before it connects again: a stream does not say why it was refused.
    if (connected && !(await live.fetched(state.getAttribute("hx-get")))) return null;
    connected = true;
    return seq;
  }

  live.follow({ connection, stream: connection.dataset.stream, types: TYPES, begin, take, ended });
})();
