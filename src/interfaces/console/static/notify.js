// Notifications of the browser about what waits for people, while a page of the console is open. A person switches them on.
"use strict";
(() => {
  const SWITCHED = "dragoman-notify";
  const SEEN = "dragoman-newest";
  const COUNTED = "dragoman-count";
  const supported = "Notification" in window && window.isSecureContext;
  const isOn = () => supported && Notification.permission === "granted" && localStorage.getItem(SWITCHED) === "on";

  // Pages of the same browser share what was seen, so that one of them tells it.
  function look() {
    const waiting = document.querySelector("#who [data-waiting]");
    if (!waiting) return;
    const { newest, waiting: count, organization } = waiting.dataset;
    const key = `${SEEN} ${organization}`;
    const seen = localStorage.getItem(key);
    const counted = `${COUNTED} ${organization}`;
    // What an older run begins to wait for is not the newest, but is one more.
    const isMore = Number(count) > Number(localStorage.getItem(counted) ?? count);
    localStorage.setItem(counted, count);
    if (seen === null || newest > seen) localStorage.setItem(key, newest);
    if (seen === null || (newest <= seen && !isMore) || !isOn()) return;
    if (document.getElementById("inbox") && document.visibilityState === "visible") return;
    notify(count === "1" ? "1 waits for a person" : `${count} wait for a person`, `Dragoman, ${organization}`);
  }

  function notify(title, body) {
    let told;
    try {
      told = new Notification(title, { body, tag: SWITCHED, renotify: true });
    } catch {
      // Chrome on Android permits notifications, but leaves them to service workers.
      localStorage.setItem(SWITCHED, "off");
      show();
      window.frame.tell("Not possible", "This browser does not notify from a page. Notifications are off.");
      return;
    }
    told.addEventListener("click", () => {
      window.focus();
      location.assign("/console/inbox");
    });
  }

  function show() {
    const button = document.querySelector("[data-notify]");
    if (!button) return;
    button.hidden = !supported;
    button.setAttribute("aria-pressed", String(isOn()));
  }

  async function toggle() {
    if (isOn()) localStorage.setItem(SWITCHED, "off");
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(SWITCHED, "on");
    else window.frame.tell("Not possible", "This browser blocks notifications of this page. Allow them in its settings first.");
    show();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-notify]")) toggle();
  });
  document.addEventListener("htmx:after:swap", look);
  show();
})();
