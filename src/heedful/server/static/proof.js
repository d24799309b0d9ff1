// What the page "proof" does beyond its HTML: it says when an evaluation came back as an error, and goes to its result.
(() => {
  "use strict";
  const trouble = document.getElementById("trouble");

  function say(text) {
    trouble.textContent = text;
    trouble.hidden = !text;
  }
  document.addEventListener("htmx:beforeRequest", () => say(""));
  document.addEventListener("htmx:responseError", (event) => {
    const told = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    say(told.querySelector(".problem")?.textContent ?? "That was refused.");
  });
  document.addEventListener("htmx:sendError", () => say("The server does not answer. Try again when it does."));
  document.addEventListener("htmx:afterSwap", () => document.getElementById("told")?.focus({ preventScroll: true }));
})();
