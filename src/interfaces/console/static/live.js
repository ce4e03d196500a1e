// Follows a stream of events until it has ended and reconnects after a cut. When signed out, the page is loaded again.
"use strict";
(() => {
  const FIRST_PAUSE = 1000;
  const LONGEST_PAUSE = 10000;

  // What the service answers, or null if the person is not signed in any more: back here after signing in.
  async function fetched(url) {
    const answer = await fetch(url);
    if (answer.redirected) { location.reload(); return null; }
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
    return answer;
  }

  // `begin` returns, before each connection, the seq to continue after; null: there is nothing to follow.
  function follow({ connection, stream, types, begin, take, ended }) {
    let pause = FIRST_PAUSE;

    async function start() {
      let after;
      try {
        after = await begin();
      } catch {
        again();
        return;
      }
      if (after !== null) connect(after);
    }

    function again() {
      // Browsers give up on some answers (a service that is starting answers nothing, a proxy 502): we do not.
      connection.textContent = "Disconnected. Trying again …";
      setTimeout(start, pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }

    function connect(after) {
      const source = new EventSource(`${stream}?after=${after}`);
      for (const type of types) source.addEventListener(type, take);
      source.addEventListener("open", () => { connection.textContent = "Live"; pause = FIRST_PAUSE; });
      source.addEventListener("end", (message) => {
        source.close();
        ended(JSON.parse(message.data).status);
      });
      source.addEventListener("error", () => {
        source.close();
        again();
      });
    }

    start();
  }

  window.live = { fetched, follow };
})();
