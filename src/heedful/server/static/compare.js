// Two things side by side: keys, answers that wait for a server that is away, and what is known so far.
"use strict";
(() => {
  const KEPT = `heedful-unsent ${location.pathname}`, LONGEST = 8000, SEEN = 400;
  const again = document.getElementById("again"), refused = document.getElementById("refused");
  const soFar = document.getElementById("so-far");
  let sending = false, looking = false, lookAgain = false, since = 0;

  const ask = () => document.getElementById("ask");
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  // What was answered and is not yet known to be kept: in the window, so that a reload does not lose it.
  const unsent = () => { try { return JSON.parse(sessionStorage.getItem(KEPT)); } catch { return null; } };
  const keep = (what) => { try { what ? sessionStorage.setItem(KEPT, JSON.stringify(what)) : sessionStorage.removeItem(KEPT); } catch { /* a window that keeps nothing */ } };

  async function send(what) {
    sending = true;
    keep(what);
    ask().setAttribute("aria-busy", "true");
    for (let pause = 250; ; pause = Math.min(2 * pause, LONGEST)) {
      try {
        const answer = await fetch(what.to, {
          method: "POST", headers: { "HX-Request": "true", "Content-Type": "application/x-www-form-urlencoded" },
          body: what.body, credentials: "same-origin", redirect: "error",
        });
        // 429, 5xx: not now. The answer has a number, so that it counts once however often it is sent.
        if (answer.status === 401) { location.href = answer.headers.get("HX-Redirect") || "/sign-in"; return; } // and then it is sent
        if (answer.status !== 429 && answer.status < 500) { await take(answer); break; }
      } catch { /* nobody is there */ }
      again.hidden = false;
      await wait(pause);
    }
    keep(null);
    again.hidden = true;
    sending = false;
    ask().removeAttribute("aria-busy");
    look();
  }

  async function take(answer) {
    const told = document.createElement("template");
    told.innerHTML = await answer.text();
    const next = told.content.querySelector("#ask");
    refused.hidden = Boolean(next);
    if (!next) {
      refused.textContent = told.content.textContent.trim() || "That was refused: load the page again.";
      return;
    }
    const focused = document.activeElement, at = focused && focused.closest("#ask") ? focused.value || "undo" : null;
    ask().replaceWith(next);
    since = performance.now();
    if (at) (next.querySelector(`button[value="${at}"]`) || next.querySelector("button:not(:disabled)") || document.getElementById("main")).focus({ preventScroll: true });
    if (matchMedia("(max-width: 30rem)").matches) scrollTo(0, 0);
    // A region that is there already is read out when its words change.
    const live = next.querySelector("#live"), words = live.textContent;
    live.textContent = "";
    setTimeout(() => { live.textContent = words; }, 50);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-answer]")) return;
    event.preventDefault();
    if (sending) return;
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    const option = event.submitter && event.submitter.closest(".option");
    if (option) option.classList.add("picked");
    send({ to: form.getAttribute("action"), body: fields.toString() });
  });

  // The second click of a double click is not an answer to the next question, which nobody can have seen so soon.
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && performance.now() - since < SEEN && event.target.closest("[data-answer] button")) event.preventDefault();
  });

  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.altKey || sending) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const held = (event.ctrlKey ? "Control+" : "") + (event.metaKey ? "Meta+" : "");
    const key = held + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    const button = [...document.querySelectorAll("#ask [data-keys]:not(:disabled)")].find((it) => it.dataset.keys.split(" ").includes(key));
    if (!button) return;
    event.preventDefault();
    button.click();
  });

  // What is known so far takes a while to find out where there is much: one look at a time, after the question.
  async function look() {
    if (!soFar) return;
    if (looking) { lookAgain = true; return; }
    looking = true;
    do {
      lookAgain = false;
      try {
        const answer = await fetch(soFar.dataset.from, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
        if (answer.ok) soFar.innerHTML = await answer.text();
        lookAgain = lookAgain || Boolean(soFar.querySelector("[data-stale]"));
      } catch { break; }
      await wait(600);
    } while (lookAgain);
    looking = false;
  }

  // A page that comes back from the browser's memory may be of long ago.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  const left = unsent();
  if (left) send(left); else look();
})();
