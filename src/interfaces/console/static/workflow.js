// The page of a workflow run: whenever something happens to the run, the page is told to show how it stands.
"use strict";
(() => {
  const TYPES = [
    "workflow.queued", "workflow.started", "workflow.requires_action", "workflow.resumed", "workflow.completed",
    "workflow.failed", "workflow.cancelled", "node.started", "node.retrying", "node.waiting", "node.resumed", "node.ready",
    "node.succeeded", "node.failed", "node.skipped", "node.cancelled",
  ];
  const connection = document.getElementById("connection");
  let seq = 0;
  let telling = false;

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

  function connect() {
    const source = new EventSource(`${connection.dataset.stream}?after=${seq}`);
    for (const type of TYPES) source.addEventListener(type, take);
    source.addEventListener("open", () => { connection.textContent = "Live"; });
    source.addEventListener("end", (message) => {
      source.close();
      connection.textContent = `Ended: ${JSON.parse(message.data).status}`;
    });
    source.addEventListener("error", () => {
      connection.textContent = "Disconnected. Trying again …";
      source.close();
      setTimeout(connect, 1000);
    });
  }

  connect();
})();
