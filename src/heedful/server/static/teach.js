// Teach it. The server ranks, words and renders; this sends what a person says, once, whatever the network does,
// and moves what is on the page to where it now belongs.
"use strict";
(() => {
  const page = document.getElementById("teach");
  const { base, person, visitor, actions } = page.dataset;
  const $ = (id) => document.getElementById(id);
  const above = matchMedia("(max-width: 59.99rem)"); // what is told stands there
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const kept = (name) => `heedful ${visitor} ${base} ${person} ${name}`;
  const recall = (name) => { try { return JSON.parse(sessionStorage.getItem(kept(name))) ?? []; } catch { return []; } };
  const keep = (name, value) => { try { sessionStorage.setItem(kept(name), JSON.stringify(value)); } catch { /* full, or not allowed: kept in memory */ } };
  const newId = () => Date.now().toString(16).padStart(12, "0") + Array.from(crypto.getRandomValues(new Uint8Array(10)), (b) => b.toString(16).padStart(2, "0")).join("");

  // ------------------------------------------------------------------ what is on the page

  const items = () => [...document.querySelectorAll("#cards > .item")];
  const order = () => items().map((item) => item.dataset.key);
  const given = (field) => $("corrections")?.elements[field].value ?? ""; // as the server last gave it
  const graded = () => "noun" in $("hand").dataset; // a loop of grades, or of ratings: cards stay where they were dealt
  const lie = () => graded() ? { hand: given("hand"), decision: given("decision") } : { hand: given("dealt") };
  const first = () => document.querySelector('.pick, .grade[tabindex="0"], .to-grade input[type="number"], .to-answer :is(input:not([type="hidden"]), textarea)');
  const drawn = () => JSON.parse(given("hand"));
  const where = () => (person ? `&person=${encodeURIComponent(person)}` : "") + (actions ? "&actions=1" : "");
  /** In a loop of ratings, the cards that are passed over: others come in place of them. */
  const past = () => "past" in $("hand").dataset && order().length ? `&past=${encodeURIComponent(JSON.stringify(order()))}` : "";

  let trouble = false;

  let said = "", lesson = ""; // what is told, and the correction that it tells of, where that can be taken back

  function say(text, { aloud = true, wrong = false, again = false, of = "" } = {}) {
    if (aloud && text) $("live").textContent = text;
    if (text) [said, lesson] = [text, of];
    if (!$("said")) return;
    $("said-text").textContent = said;
    $("said").classList.toggle("trouble", wrong);
    $("again").hidden = !again;
    $("dismiss").hidden = again;
    $("undo").hidden = !lesson || Boolean(document.querySelector(`.lessons .undone[data-key="${CSS.escape(lesson)}"]`));
    $("said").hidden = !said || Boolean(held);
  }

  /** Put what the server rendered in place of what is there, each thing moving from where it was. */
  function show(html, { aloud = true } = {}) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    if (!fresh.getElementById("hand")) return;
    waiting = false;
    const focused = document.activeElement?.dataset?.focus;
    const opened = [...document.querySelectorAll("#side details[open]")].map((each) => each.dataset.focus);
    const before = places();
    const list = given("decision");
    const weights = new Map([...document.querySelectorAll(".bars > li")].map((li) => [li.dataset.key, +li.dataset.value]));
    for (const id of ["hand", "side"]) $(id).replaceWith(document.adoptNode(fresh.getElementById(id)));
    document.querySelectorAll("#side details").forEach((each) => { if (opened.includes(each.dataset.focus)) each.open = true; });
    draggable();
    scales();
    if (focused) {
      const again = document.querySelector(`[data-focus="${CSS.escape(focused)}"]:not([hidden])`);
      (again ?? first())?.focus({ preventScroll: true });
    }
    const told = $("hand").dataset;
    if (trouble) unheard();
    else say(told.said ?? "", { aloud, of: told.lesson });
    if (graded() && list && given("decision") !== list && before.size) $("hand").scrollIntoView({ block: "start" }); // a new list begins at its top
    else if (told.said && !graded()) toSaid();
    move(before);
    ghosts(weights);
  }

  /** Where what is told stands above the cards, one sees it, and the first of them. Cards that are scored stay under the
      hand: what came of a score stands on its card. */
  function toSaid() {
    const it = $("said");
    if (it && !it.hidden && above.matches && it.getBoundingClientRect().top < 0) it.scrollIntoView({ block: "start" });
  }

  function places() {
    return new Map([...document.querySelectorAll("[data-key]")].map((each) => [each.dataset.key, each.getBoundingClientRect()]));
  }

  function move(before) {
    for (const each of document.querySelectorAll("[data-key]")) {
      const from = before.get(each.dataset.key);
      if (!from) { if (before.size) each.classList.add("new"); continue; }
      if (still.matches) continue;
      const to = each.getBoundingClientRect();
      const [x, y] = [from.left - to.left, from.top - to.top];
      const zIndex = "placed" in each.dataset ? 2 : y > 0 ? 1 : 0; // what rises passes over what makes way
      if (x || y) each.animate([{ transform: `translate(${x}px, ${y}px)`, zIndex }, { transform: "none", zIndex }], { duration: 380, easing: "cubic-bezier(.2, .8, .2, 1)" });
    }
  }

  /** Behind each bar, what it was before. */
  function ghosts(before) {
    if (!before.size) return;
    let less = false;
    for (const li of document.querySelectorAll(".bars > li")) {
      if (!li.querySelector(".bar")) continue; // none stands out
      const now = +li.dataset.value, was = before.get(li.dataset.key) ?? 0;
      const old = was * now > 0 ? 100 * Math.abs(was) : 0;
      li.querySelector(".ghost").setAttribute("width", old.toFixed(2));
      less ||= old > 100 * Math.abs(now) + 1;
      if (!still.matches) li.querySelector(".value").animate([{ width: `${old}px` }, { width: `${100 * Math.abs(now)}px` }], { duration: 500, easing: "ease-out" });
    }
    if ($("legend")) $("legend").hidden = !less;
  }

  // ------------------------------------------------------------------ what is said: kept until the server has it

  let queue = recall("unsent"), mine = recall("mine"), sending = false, wait = 0, timer = 0;

  function tell(path, fields) {
    const event = newId();
    queue.push({ path, fields: { event, ...fields, person, ...(actions && { actions }) } });
    keep("unsent", queue);
    send();
    return event;
  }

  async function send() {
    clearTimeout(timer);
    if (sending || !queue.length) return;
    sending = true;
    const [next] = queue;
    let html = "", status = 0, pause = 0;
    try {
      const answer = await fetch(base + next.path, {
        method: "POST",
        headers: { "HX-Request": "true", "Content-Type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(next.fields),
        signal: AbortSignal.timeout(15000),
      });
      status = answer.status;
      pause = 1000 * (+answer.headers.get("Retry-After") || 0);
      if (status === 401) { location.assign(answer.headers.get("HX-Redirect") ?? "/sign-in"); return; }
      html = await answer.text();
    } catch { status = 0; }
    sending = false;
    if ([0, 408, 429, 502, 503, 504].includes(status)) { later(pause); return; }
    const back = trouble;
    trouble = false; wait = 0;
    queue.shift();
    keep("unsent", queue);
    if (status < 300) {
      if (next.path === "/teach") mine.push(next.fields.event);
      else mine = mine.filter((event) => event !== next.fields.event);
      keep("mine", mine = mine.slice(-50));
      if (back) listen();
      if (dragging || held) { waiting = true; stands(html); } // not under the hand of a person who is already at the next one
      else show(html);
    } else {
      await look();
      say(new DOMParser().parseFromString(html, "text/html").querySelector(".problem")?.textContent.trim() ?? `The server answered ${status}.`, { wrong: true });
    }
    send();
  }

  /** The server does not answer: again in a while, longer each time. */
  function later(pause) {
    wait = Math.max(Math.min(wait * 2 || 500, 8000), pause);
    timer = setTimeout(send, wait);
    unheard(!trouble);
    if (!trouble) toSaid();
    trouble = true;
    if (waiting) look(); // what others taught while this was on its way
  }

  function unheard(aloud = false) {
    const what = $("hand").dataset.noun ?? "correction", many = queue.length > 1 ? `Your ${queue.length} ${what}s are` : `Your ${what} is`;
    say(`The server does not answer. ${many} kept, and sent again until it does.`, { aloud, wrong: true, again: true });
  }

  /** What a person said of these cards stands, also where what was rendered is not shown. */
  function stands(html) {
    const there = new DOMParser().parseFromString(html, "text/html").querySelector("#corrections [name=placed]");
    if (there && $("corrections")) $("corrections").elements.placed.value = there.value;
  }

  function correct(kind, fields, shown = order()) {
    const untouched = JSON.stringify(shown) === JSON.stringify(drawn());
    tell("/teach", { kind, hand: JSON.stringify(shown), dealt: given("dealt"), decision: untouched ? given("decision") : "", ...fields });
  }

  function pick(button) {
    const shown = held ? drawn() : order();
    if (held) restore();
    button.closest(".item").classList.add("picked");
    correct("pick", { item: button.value }, shown);
  }

  /** The last lesson of this window, on its way or there; not one that is being taken back, nor a grade that another
      one of the same card stands in place of. */
  function latest() {
    const sent = (path) => queue.filter((each) => each.path === path).map(({ fields: { event } }) => event), back = sent("/undo");
    const gone = (event) => back.includes(event) || graded() && document.querySelector(`.lessons .undone[data-key="${CSS.escape(event)}"]`);
    return [...mine, ...sent("/teach")].filter((event) => !gone(event)).pop();
  }

  function undo(event = latest()) {
    if (!event) { say("There is nothing of yours to take back."); return; }
    tell("/undo", { event, ...lie() });
  }

  /** One grade or rating of one card; it is marked at once, and what the server makes of it comes after. */
  function grade(form, kind, value) {
    for (const each of form.querySelectorAll(".grade")) each.setAttribute("aria-pressed", String(each.value === value));
    tell("/teach", { kind, item: form.elements.namedItem("item").value, [kind]: value, ...lie() });
  }

  /** An action on one card; one that was pressed before is taken back. */
  function act(form, button) {
    const done = button.name === "back" ? button.value : button.dataset.event ?? "";
    button.setAttribute("aria-pressed", String(!done));
    if (done) { delete button.dataset.event; undo(done); } else button.dataset.event = tell("/teach", { kind: "action", item: form.elements.namedItem("item").value, action: button.value, ...lie() });
  }

  /** With Tab one comes to a card's scale once; with the arrows to each of its grades. */
  function stop(button) {
    for (const each of button.closest(".scale").children) each.tabIndex = each === button ? 0 : -1;
  }

  function scales() {
    for (const scale of document.querySelectorAll(".to-grade .scale")) stop(scale.querySelector('[aria-pressed="true"]') ?? scale.querySelector("[data-predicted]") ?? scale.children[0]);
  }

  // ------------------------------------------------------------------ a new order, by hand or by key

  let held = null; // the order before it was touched; null where it was not
  let touched = []; // the cards that were moved since, the last one last
  let dragging = false, dropped = 0, waiting = false;

  function arrange(names) {
    const before = places(), by = new Map(items().map((item) => [item.dataset.key, item]));
    $("cards").append(...names.map((name) => by.get(name)));
    number();
    move(before);
  }

  function number() { items().forEach((item, i) => { item.querySelector(".rank").textContent = i + 1; }); }

  function step(item, by) {
    const names = order(), from = names.indexOf(item.dataset.key), to = from + by;
    if (to < 0 || to >= names.length) return;
    held ??= [...names];
    touch(item);
    names.splice(to, 0, ...names.splice(from, 1));
    const focus = document.activeElement;
    arrange(names);
    focus.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
    unsent(true);
    $("live").textContent = `Place ${to + 1} of ${names.length}, not sent yet. Enter sends this order, Escape puts it back.`;
  }

  function touch({ dataset: { key } }) { touched = [...touched.filter((name) => name !== key), key]; }

  function unsent(there) {
    $("unsent").hidden = !there;
    $("said").hidden = there || !said;
  }

  function sendOrder() {
    if (!held) return;
    const shown = held, now = order(), moved = JSON.stringify(touched);
    held = null;
    touched = [];
    unsent(false);
    if (JSON.stringify(now) !== JSON.stringify(shown)) correct("order", { order: JSON.stringify(now), moved }, shown);
  }

  function restore() {
    if (!held) return;
    const focus = document.activeElement, names = held;
    held = null;
    touched = [];
    arrange(names);
    unsent(false);
    if (focus?.isConnected && focus.offsetParent) focus.focus({ preventScroll: true });
    else document.querySelector(".pick")?.focus({ preventScroll: true });
    $("live").textContent = "Put back as it was.";
    if (waiting) look();
  }

  function draggable() {
    const list = $("cards");
    if (!list?.querySelector(".grip") || !window.Sortable) return;
    document.querySelectorAll(".tools").forEach((each) => { each.hidden = false; });
    let shown = [];
    Sortable.create(list, {
      draggable: ".item",
      // With a mouse the whole card is taken hold of; with a finger its grip alone, so that the page can be scrolled.
      filter: (event, item) => (event.touches || event.pointerType === "touch") && !event.target.closest(".grip") || Boolean(event.target.closest(".move")),
      preventOnFilter: false,
      forceFallback: true,
      fallbackOnBody: true, // what is dragged is no card of the list
      fallbackTolerance: 5,
      animation: still.matches ? 0 : 150,
      ghostClass: "lifted",
      fallbackClass: "held",
      onStart: () => { dragging = true; shown = held ?? order(); list.classList.add("dragging"); },
      onEnd: ({ item }) => {
        dragging = false;
        dropped = Date.now();
        list.classList.remove("dragging");
        number();
        if (JSON.stringify(order()) !== JSON.stringify(shown)) { held = shown; touch(item); sendOrder(); } else if (waiting) look();
      },
    });
  }

  // ------------------------------------------------------------------ what others teach meanwhile

  let source = null, due = 0;

  /** The same cards as the model has them by now. */
  async function look() {
    if (dragging || held || sending || !$("corrections")) { waiting = true; return; }
    waiting = false;
    try {
      const now = new URLSearchParams(graded() ? lie() : { ...lie(), placed: given("placed") });
      const answer = await fetch(`${base}/hand?${now}${where()}`, { headers: { "HX-Request": "true" } });
      if (answer.status === 401) { location.assign(answer.headers.get("HX-Redirect") ?? "/sign-in"); return; }
      if (dragging || held || sending) waiting = true;
      else if (answer.ok) show(await answer.text(), { aloud: false });
    } catch { /* it is told when something is sent, and looked at again when the stream is back */ }
  }

  function listen() {
    source?.close();
    if (document.hidden) return; // a browser has few connections for all of its windows
    source = new EventSource(`${base}/live?kinds=feedback,undo,item&after=${$("hand").dataset.seq}`);
    const heard = ({ data }) => {
      const { seq } = JSON.parse(data);
      if (seq <= +$("hand").dataset.seq) return;
      clearTimeout(due);
      due = setTimeout(() => { if (seq > +$("hand").dataset.seq) look(); }, 120);
    };
    for (const kind of ["feedback", "undo", "item"]) source.addEventListener(kind, heard);
    source.onopen = () => send(); // what was missed meanwhile is told again, from the last event that came
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) { look(); setTimeout(listen, 3000); } };
  }
  document.addEventListener("visibilitychange", () => { if (document.hidden) source?.close(); else { listen(); look(); } });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", ({ persisted }) => { if (persisted) { listen(); look(); } });
  addEventListener("online", () => send());

  async function deal() {
    held = null;
    touched = [];
    try {
      const answer = await fetch(`${base}/hand?deal=new${where()}${past()}`, { headers: { "HX-Request": "true" } });
      if (answer.ok) { show(await answer.text()); say(first() ? `Other cards. ${document.querySelector(".title").textContent} is first.` : "There are no other cards."); return; }
    } catch { /* said below */ }
    say("The server does not answer: no other cards for now.", { wrong: true });
  }

  function dismiss() {
    said = "";
    say("");
    first()?.focus({ preventScroll: true });
  }

  // ------------------------------------------------------------------ mouse, touch, keys

  page.addEventListener("submit", (event) => {
    const { target, submitter } = event;
    if (target.id === "corrections") {
      event.preventDefault();
      if (submitter?.name === "kind") { restore(); correct("none", {}); } else if (submitter?.name === "item" && Date.now() - dropped > 80) pick(submitter);
    } else if (target.classList.contains("to-grade")) {
      event.preventDefault();
      const kind = target.elements.namedItem("kind").value;
      if (kind === "action") act(target, submitter);
      else grade(target, kind, submitter?.name === kind ? submitter.value : target.elements.namedItem(kind).value);
    } else if (target.classList.contains("to-answer")) {
      event.preventDefault();
      const { event: _, person: __, ...fields } = Object.fromEntries(new FormData(target, submitter));
      tell("/teach", fields);
    } else if (target.classList.contains("take-back")) {
      event.preventDefault();
      tell("/undo", { event: target.elements.event.value, ...lie() });
    }
  });

  page.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    if (at(".move")) step(at(".item"), +at(".move").dataset.move);
    else if (at("#send")) sendOrder();
    else if (at("#restore")) restore();
    else if (at("#undo")) undo(lesson);
    else if (at("#dismiss")) dismiss();
    else if (at("#again")) send();
    else if (at("#help")) $("keys").showModal();
    else if (at("#deal") && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); deal(); }
  });

  page.addEventListener("focusin", ({ target }) => { if (target.matches("button.grade")) stop(target); });

  /** From a grade to the next one, or to the next card's. */
  function go(from, by, cards = false) {
    const way = by < 0 ? "previousElementSibling" : "nextElementSibling";
    if (document.activeElement.closest(".scale") !== from.closest(".scale")) from.focus(); // on the card itself
    else (cards ? from.closest(".item")[way]?.querySelector('.grade[tabindex="0"]') : from[way])?.focus();
  }

  document.addEventListener("keydown", (event) => {
    const { key, altKey, ctrlKey, metaKey, shiftKey } = event;
    if ($("keys")?.open || event.target.closest("input, textarea, select") || event.isComposing) return;
    const item = event.target.closest(".item"), by = { ArrowUp: -1, ArrowDown: 1 }[key];
    const plain = !altKey && !ctrlKey && !metaKey;
    const along = { ArrowLeft: -1, ArrowRight: 1 }[key], at = (event.target.closest(".scale") ?? item)?.querySelector('.grade[tabindex="0"]');
    const digit = /^[0-9]$/.test(key) && "digits" in $("hand").dataset && item?.querySelector(`button.grade:not(.act)[value="${key}"]`);
    let done = true;
    if (at && plain && !shiftKey && along) go(at, along);
    else if (at && plain && !shiftKey && by) go(at, by, true);
    else if (digit && plain && !event.repeat) { digit.focus(); digit.click(); }
    else if (by && item && altKey && !ctrlKey && !metaKey && !item.closest(".hand--one") && !graded()) step(item, by);
    else if (by && item && plain && !shiftKey) (by < 0 ? item.previousElementSibling : item.nextElementSibling)?.querySelector(".pick")?.focus();
    else if (key === "Enter" && held && item && plain) sendOrder();
    else if (key === "Escape" && held) restore();
    else if (key.toLowerCase() === "z" && (ctrlKey || metaKey) && !altKey && !shiftKey && $("said")) undo();
    else if (key.toLowerCase() === "n" && plain && !event.repeat && $("deal")) deal();
    else if (key === "?" && !ctrlKey && !metaKey && $("keys")) $("keys").showModal();
    else done = false;
    if (done) event.preventDefault();
  });

  if ($("help")) $("help").hidden = false;
  draggable();
  scales();
  say("");
  listen();
  send();
})();
