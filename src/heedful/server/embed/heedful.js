// Reports clicks on a list to heedful. docs/browsers.md says how a page uses it.
//
//   <script src="https://rank.example/heedful.js" data-loop="cars" defer></script>
//   <ol data-heedful="DECISION" data-heedful-token="TOKEN">
//     <li data-heedful-item="mini"><a href="/mini">Mini</a></li>
//
// A click anywhere within an item counts, once for each item of a decision.
(() => {
  "use strict";
  const { src, dataset } = document.currentScript;
  const sent = new Set();
  const unsent = new Map();

  const send = (key, url, body) => {
    if (navigator.sendBeacon(url, body)) unsent.delete(key);
    else unsent.set(key, [url, body]); // the browser has too much to send: again when the page is hidden or left
  };

  const report = (event) => {
    if (event.type === "auxclick" && event.button !== 1) return; // a middle click opens a tab
    const item = event.target instanceof Element && event.target.closest("[data-heedful-item]");
    const list = item && item.closest("[data-heedful]");
    if (!list) return;
    const loop = list.dataset.heedfulLoop || dataset.loop;
    const click = {
      token: list.dataset.heedfulToken,
      decision: list.dataset.heedful,
      item: item.dataset.heedfulItem,
    };
    const key = JSON.stringify([loop, click.decision, click.item]);
    if (sent.has(key)) return;
    sent.add(key);
    send(key, new URL(`v1/loops/${encodeURIComponent(loop)}/clicks`, src), JSON.stringify(click));
  };

  // Before the page's own handlers, which may stop the event or leave the page.
  addEventListener("click", report, true);
  addEventListener("auxclick", report, true);
  const again = () => unsent.forEach((each, key) => send(key, ...each));
  addEventListener("visibilitychange", again);
  addEventListener("pagehide", again); // some browsers tell no change when the page is left
})();
