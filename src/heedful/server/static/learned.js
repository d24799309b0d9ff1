// What the pages "what it learned" and "loops" do beyond their HTML: follow the log, and draw.
(() => {
  "use strict";

  // ------------------------------------------------------------------ following the log

  const KINDS = ["feedback", "undo", "item", "activate", "decision"];
  const REST = 1000; // milliseconds between two looks, at least
  const PATIENCE = 4; // ... and so many times as long as the last look took: a long log is not read all the time
  const LONGEST = 30000; // where the last looks failed

  function follow(page) {
    const trouble = document.getElementById("trouble"), said = document.getElementById("said");
    let stirred = false, looking = false, since = 0, rest = REST, source = null;

    function look() {
      if (!stirred || looking || document.hidden) return;
      stirred = false;
      looking = true;
      since = performance.now();
      htmx.trigger(page, "learned");
    }
    function stir() {
      if (!stirred) window.setTimeout(look, Math.max(0, since + rest - performance.now()));
      stirred = true;
    }
    page.addEventListener("htmx:afterRequest", (event) => {
      if (event.detail.requestConfig.elt !== page) return;
      looking = false;
      if (event.detail.successful) rest = Math.max(REST, PATIENCE * (performance.now() - since));
      else [stirred, rest] = [true, Math.min(2 * rest, LONGEST)];
      if (stirred) window.setTimeout(look, rest);
    });
    document.addEventListener("visibilitychange", () => { if (document.hidden) source?.close(); else { stir(); listen(); } });

    // Where a lesson was undone its button is gone: the next one is where one goes on.
    page.addEventListener("htmx:afterRequest", (event) => {
      const row = event.detail.requestConfig.elt.closest("tr");
      if (!row || !event.detail.successful || document.activeElement !== document.body) return;
      const others = Array.from(page.querySelectorAll("#lessons tr[data-seq]"));
      const next = others.find((each) => Number(each.dataset.seq) < Number(row.dataset.seq) && each.querySelector("button"));
      (next?.querySelector("button") ?? page.querySelector("#lessons-h")).focus();
    });
    page.addEventListener("htmx:responseError", (event) => {
      if (event.detail.requestConfig.elt === page) return;
      const told = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
      said.textContent = told.querySelector(".problem")?.textContent ?? "That was refused.";
    });
    page.addEventListener("htmx:sendError", (event) => {
      if (event.detail.requestConfig.elt !== page) said.textContent = "The server does not answer. Try again when it does.";
    });

    function listen() {
      source?.close();
      if (document.hidden) return; // a browser has few connections for all of its windows; this comes again when it is seen
      source = new EventSource(page.dataset.live);
      source.addEventListener("open", () => {
        if (trouble.hidden) return;
        trouble.hidden = true;
        rest = REST;
        stirred = false;
        stir(); // what was missed meanwhile
      });
      for (const kind of KINDS) source.addEventListener(kind, stir);
      source.addEventListener("error", () => {
        trouble.hidden = false;
        if (source.readyState !== EventSource.CLOSED) return; // it comes back by itself
        window.setTimeout(() => { stir(); listen(); }, 3000);
      });
    }
    listen();
    window.addEventListener("pagehide", () => source?.close());
    window.addEventListener("pageshow", (event) => { if (event.persisted) { stir(); listen(); } });
  }

  // What a person opened stays open, and what is new is marked.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    for (const open of target.querySelectorAll("details[id][open]")) {
      fragment.querySelector("#" + CSS.escape(open.id))?.setAttribute("open", "");
    }
    const newest = Math.max(0, ...Array.from(target.querySelectorAll("[data-seq]"), (each) => Number(each.dataset.seq)));
    for (const each of fragment.querySelectorAll("[data-seq]")) {
      if (newest && Number(each.dataset.seq) > newest) each.classList.add("fresh");
    }
  });

  // ------------------------------------------------------------------ drawing

  const drawn = new Map(); // element -> [uPlot, ResizeObserver]

  function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  const PLACES = [0, 0.1, 0.2, 1 / 3, 0.5, 1]; // of 1 / place
  const ORDINALS = ["none", "10th", "5th", "3rd", "2nd", "1st"];
  const LEGEND = 34;
  const whole = (x) => (Number.isInteger(x) ? x.toLocaleString("en") : "");

  // A line has no value at every place: the nearest one is told.
  function nearest(plot, line, at) {
    const values = plot.data[line];
    for (let off = 0; off < values.length; off++) {
      if (values[at - off] != null) return at - off;
      if (values[at + off] != null) return at + off;
    }
    return at;
  }

  function heights(y) {
    if (y === "log") {
      const values = (plot, ticks) => ticks.map((tick) => String(Number(tick.toPrecision(1))));
      const splits = (plot, axis, least, most) => {
        const powers = [];
        for (let power = Math.ceil(Math.log10(least)); power <= Math.log10(most); power++) powers.push(10 ** power);
        return powers;
      };
      return { scale: { distr: 3 }, axis: { values, splits, size: 56 }, told: (value) => value.toPrecision(2) };
    }
    if (y === "error") {
      const range = (plot, least, most) => [0, 1.1 * most || 1];
      return { scale: { range }, axis: { values: (plot, ticks) => ticks.map((tick) => String(Number(tick.toPrecision(3)))), size: 48 }, told: (value) => value.toFixed(2) };
    }
    if (Array.isArray(y)) { // a scale of ratings, whole
      const values = (plot, ticks) => ticks.map((tick) => String(Number(tick.toPrecision(3))));
      const room = 0.04 * (y[1] - y[0]);
      return { scale: { range: [y[0] - room, y[1] + room] }, axis: { values, size: 48 }, told: (value) => value.toFixed(2) };
    }
    const axis = { splits: () => PLACES, values: () => ORDINALS, size: 48 };
    return { scale: { range: [0, 1.03] }, axis, told: (value) => value.toFixed(2) };
  }

  function draw(place) {
    const given = JSON.parse(place.dataset.plot);
    place.replaceChildren();
    place.classList.add("drawn");
    const line = { stroke: token("--line"), width: 1 };
    const axis = { stroke: token("--muted"), grid: line, ticks: line, font: "12px system-ui, sans-serif" };
    const y = heights(given.y);
    const size = () => ({ width: place.clientWidth, height: place.clientHeight - LEGEND });
    const plot = new uPlot({
      ...size(),
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, dataIdx: nearest },
      scales: { x: { time: false }, y: y.scale },
      axes: [{ ...axis, label: given.label, labelFont: axis.font, labelSize: 18, values: (plot, ticks) => ticks.map(whole) }, { ...axis, ...y.axis }],
      series: [
        { label: given.label, value: (plot, x) => (x == null ? "–" : whole(x)) },
        ...given.lines.map(({ label, ink, dash }) => ({
          label, dash, stroke: token(ink), width: 2.5, spanGaps: true, points: { show: false },
          value: (plot, value) => (value == null ? "–" : y.told(value)),
        })),
      ],
    }, [given.x, ...given.lines.map((each) => each.values)], place);
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(place);
    drawn.set(place, [plot, observer]);
  }

  function drawAll(again) {
    for (const [place, [plot, observer]] of drawn) {
      if (!again && place.isConnected) continue;
      observer.disconnect();
      plot.destroy();
      drawn.delete(place);
    }
    for (const place of document.querySelectorAll("[data-plot]")) if (!drawn.has(place)) draw(place);
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));

  // ------------------------------------------------------------------ times as the reader's clock has them

  const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

  function tellTimes() {
    const today = new Date().toDateString();
    for (const each of document.querySelectorAll("time[datetime]:not([title])")) {
      const moment = new Date(each.dateTime);
      each.title = each.textContent;
      each.textContent = (moment.toDateString() === today ? CLOCK : DAY).format(moment);
    }
  }

  // ------------------------------------------------------------------ copying

  for (const button of document.querySelectorAll("[data-copies]")) {
    const text = document.getElementById(button.dataset.copies);
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch { // not over plain http: then it is marked, for the person to copy
        window.getSelection().selectAllChildren(text);
        button.textContent = "Marked: copy it with Ctrl+C";
      }
    });
  }

  // ------------------------------------------------------------------ beginning

  function settle() {
    tellTimes();
    if (window.uPlot) drawAll(false);
  }
  document.addEventListener("htmx:afterSettle", settle);
  document.addEventListener("htmx:oobAfterSwap", settle);
  settle();
  const page = document.querySelector("[data-live]");
  if (page) follow(page);
})();
