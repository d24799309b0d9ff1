/** The client against a real server at HEEDFUL_URL, with HEEDFUL_KEY; tests/clients/test_typescript.py starts it. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";

import { Client, ProblemError, UnansweredError, pageToken } from "heedful";
import type { Fallback, Options } from "heedful";

const url = process.env["HEEDFUL_URL"]!;
const key = process.env["HEEDFUL_KEY"]!;
const items = [
  { id: "mini", hp: 50, mpg: 40 },
  { id: "beetle", hp: 50, mpg: 20 },
  { id: "mustang", hp: 150, mpg: 20 },
  { id: "a/b c", hp: 120, mpg: 25 },
  { id: "...", hp: 110, mpg: 22 },
];
const settings = { control: 0, exploration: 0 };
const patient = { url, key, timeout: 20_000, patience: 20_000 };

/** A loop of its own for one test. */
async function made(t: { name: string }, more: object = {}, options: Options = {}) {
  const client = new Client({ ...patient, ...options });
  const name = t.name.replaceAll(/\W+/g, "-").slice(0, 60);
  await new Client(patient).create({ name, items, settings, ...more });
  return { client, name, loop: client.loop(name) };
}

/** A `fetch` that fails in the way of `answer` for the calls that it has one for, and counts them. */
function failing(answer: (call: number, path: string) => Promise<Response> | undefined) {
  const calls: string[] = [];
  const send: typeof fetch = (input, init) => {
    const path = new URL(String(input)).pathname;
    calls.push(path);
    return answer(calls.length, path) ?? fetch(input, init);
  };
  return { calls, fetch: send };
}

const busy = (headers: Record<string, string> = {}) => Promise.resolve(new Response("{}", { status: 503, headers }));
const cut = () => Promise.reject(new TypeError("fetch failed", { cause: new Error("ECONNRESET") }));

async function events(name: string): Promise<Record<string, number>> {
  return (await new Client(patient).loop(name).about()).events;
}

test("a click teaches, counts once, and is undone", async (t) => {
  const { loop, name } = await made(t);
  const before = await loop.decide(["mustang", "beetle", "mini"], { person: "ann" });
  assert.deepEqual(before.shown, ["mustang", "beetle", "mini"]);
  assert.equal(before.fallback, false);
  const answer = await loop.feedback(before, { clicks: ["mini"] }, { id: "e1" });
  assert.deepEqual([answer.status, answer.event, answer.learned], ["applied", "e1", true]);
  assert.equal((await loop.feedback(before.id, { clicks: ["mini"] }, { id: "e1" })).status, "duplicate");
  const after = await loop.decide(["mustang", "beetle", "mini"], { person: "bob", id: "d2" });
  assert.equal(after.shown[0], "mini");
  assert.equal((await loop.decide(undefined, { id: "d3", show: 2, prior: { mini: 3 } })).shown.length, 2);
  const refused = await loop.feedback(before, { clicks: ["tram"] });
  assert.equal(refused.status, "rejected");
  assert.match(refused.reason ?? "", /^clicks: expected items that were shown \('mustang', 'beetle', 'mini'\), got 'tram'; /);
  assert.equal((await loop.undo(answer)).status, "applied");
  assert.equal((await loop.undo("no event")).status, "rejected");
  assert.equal((await events(name))["feedback"], 1);
});

test("every form of feedback", async (t) => {
  const { loop, client } = await made(t);
  const d = await loop.decide(undefined, { id: "d1" });
  const [first, second] = [d.shown[0]!, d.shown[1]!];
  const forms = [
    { clicks: [second] }, { better: [second, first] }, { better: second }, { thumb: "up" }, { none: true },
    { thumb: "down", item: first }, { action: "buy", item: second },
    { rating: { [first]: 2, [second]: 5 } }, { edit: { hp: 60 } },
  ] as const;
  for (const form of forms) {
    assert.equal((await loop.feedback(d, form as never)).status, "applied", JSON.stringify(form));
  }
  const answers = await loop.feedbackMany(forms.map((form) => ({ decision: "d1", ...form }) as never));
  assert.deepEqual(answers.map((each) => each.status), forms.map(() => "applied"));
  const kinds: [string, object, object, (shown: string[]) => object][] = [
    ["grades", { learner: "prank:n_ranks=5" }, {}, (shown) => ({ grade: { [shown[0]!]: 4 } })],
    ["ratings", { settings: { ratings: [1, 5] } }, { person: "ann" }, (shown) => ({ rating: { [shown[0]!]: 4 } })],
    ["actions", { settings: { ratings: [1, 5] } }, { person: "b" }, (shown) => ({ actions: { [shown[0]!]: "buy" } })],
    ["choices", { settings: { choices: "best" } }, { person: "ann" }, () => ({ choice: "second" })],
  ];
  for (const [kind, more, given, form] of kinds) {
    const other = await client.create({ name: `forms-${kind}`, items, ...more });
    const shown = await other.decide(undefined, given);
    assert.equal((await other.feedback(shown, form(shown.shown))).status, "applied", kind);
  }
});

test("items, the model, and what it says of itself", async (t) => {
  const { loop, client, name } = await made(t);
  assert.ok((await client.loops()).includes(name));
  assert.ok(await client.healthy());
  assert.deepEqual(await loop.items(), items.map((item) => item.id));
  assert.equal(await loop.putItems([{ id: "estate", hp: 100, mpg: 30 }, items[0]!]), 1);
  for (const gone of [true, false]) assert.equal(await loop.withdraw("a/b c"), gone);
  assert.equal(await loop.withdraw("..."), true);
  await assert.rejects(loop.withdraw(".."), /^TypeError: item: expected a name that fetch can send, got ".."$/);
  assert.deepEqual(await loop.items(), ["mini", "beetle", "mustang", "estate"]);
  const d = await loop.decide(undefined, { person: "ann", id: "d/1" });
  await loop.feedback(d, { better: ["mustang"] });
  assert.equal((await loop.rank({ candidates: ["mini", "mustang"] }))[0], "mustang");
  const weights = await loop.weights();
  assert.ok(weights["hp"]! > 0);
  assert.equal((await loop.why(d)).item, d.shown[0]);
  assert.equal((await loop.why(d, "mustang", { top: 1 })).item, "mustang");
  assert.equal((await loop.report({ last: 10 })).decisions, 1);
  const { promotions } = await client.call("get", "/v1/loops/{loop}/promotions", { path: { loop: name } });
  assert.deepEqual(promotions, []);
  const told = await loop.record({ candidates: ["mini", "mustang"], shown: ["mini"], id: "r1" });
  assert.equal(told.arm, "imported");
  const later = await loop.decide(undefined, { deferred: true });
  assert.equal((await loop.activate(later)).status, "applied");
  const back = await loop.rollback(told.version, { reason: "a test" });
  assert.equal(back.answer.status, "applied");
  const { events } = await loop.eventsOf("ann");
  assert.equal(events.length > 0, true);
  assert.equal((await loop.forget("ann")).events, events.length);
  assert.equal((await loop.about()).name, name);
});

test("what is wrong has a kind, a status and a field", async (t) => {
  const { loop, client } = await made(t);
  const stranger = new Client({ url, key: `hk_ab12cd34_${"x".repeat(43)}` });
  const wrong: [() => Promise<unknown>, number, string, string | undefined][] = [
    [() => loop.decide(undefined, { show: 0 }), 422, "bad-input", "show"],
    [() => client.loop("nothing").decide(["a"]), 404, "not-found", undefined],
    [() => loop.feedback("d", {}), 422, "bad-input", undefined],
    [() => stranger.loops(), 401, "no-key", undefined],
    [() => client.create({ name: loop.name }), 409, "exists", undefined],
    [() => loop.why("nobody", "mini"), 404, "not-found", undefined],
  ];
  for (const [ask, status, kind, field] of wrong) {
    await assert.rejects(ask, (error) => {
      assert.ok(error instanceof ProblemError, String(error));
      assert.deepEqual([error.status, error.kind], [status, kind]);
      if (field !== undefined) assert.equal(error.field, field);
      assert.equal(error.message, error.problem.detail);
      return true;
    });
  }
});

test("an event whose answer is lost is sent again, and counts once", async (t) => {
  const { loop, name } = await made(t);
  const d = await loop.decide();
  const sent: string[] = [];
  const losing: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    return sent.push(String(init?.body)) <= 2 ? cut() : response;
  };
  const answer = await new Client({ ...patient, fetch: losing }).loop(name).feedback(d, { clicks: [d.shown[1]!] });
  assert.equal(answer.status, "duplicate");
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent).size, 1);
  assert.equal((await events(name))["feedback"], 1);
});

test("a server that is busy is asked again, as long as there is time", async (t) => {
  const { loop, name } = await made(t);
  const d = await loop.decide();
  const { calls, fetch } = failing((call) => (call <= 2 ? busy() : undefined));
  assert.equal((await new Client({ ...patient, fetch }).loop(name).feedback(d, { thumb: "up" })).status, "applied");
  assert.equal(calls.length, 3);
  const long = failing(() => busy({ "retry-after": "60" })); // longer than its patience
  const impatient = new Client({ ...patient, fetch: long.fetch }).loop(name).items();
  await assert.rejects(impatient, (error) => error instanceof ProblemError && error.status === 503);
  assert.equal(long.calls.length, 1);
  const soon = failing((call) => (call <= 1 ? busy({ "retry-after": "1" }) : undefined));
  const start = performance.now();
  assert.ok((await new Client({ ...patient, fetch: soon.fetch }).loop(name).items()).length > 0);
  assert.ok(performance.now() - start >= 990); // not before the server says
  const gone = failing(() => cut());
  const away = new Client({ ...patient, patience: 300, fetch: gone.fetch }).loop(name);
  await assert.rejects(away.forget("ann"), { name: "UnansweredError", message: /ECONNRESET/ });
  assert.equal(gone.calls.length, 1); // it may have arrived, and would say that nothing was there
  await assert.rejects(
    away.feedback(d, { thumb: "up" }, { id: "e9" }),
    (error) => error instanceof UnansweredError && error.event === "e9",
  );
  assert.ok(gone.calls.length > 2);
});

test("a call ends with its signal, and in its time", async () => {
  const server = createServer(() => undefined); // it takes a request, and never answers
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const silent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const loop = new Client({ url: silent, timeout: 50, patience: 60_000 }).loop("cars");
  const ending = new AbortController();
  const asked = loop.items({ signal: ending.signal });
  setTimeout(() => ending.abort(new Error("the page is left")), 20);
  await assert.rejects(asked, /^Error: the page is left$/);
  await assert.rejects(loop.decide(["a"], { signal: ending.signal }), /^Error: the page is left$/);
  await assert.rejects(loop.items({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  const d = await loop.decide(["a", "b"]);
  assert.deepEqual([d.arm, d.shown], ["fallback", ["a", "b"]]);
  assert.match((d as Fallback).reason, /no answer within \d+ ms$/);
  server.closeAllConnections();
  server.close();
});

test("when the server is away, the caller's own order is shown, and told before feedback on it", async (t) => {
  let away = true;
  const { calls, fetch } = failing(() => (away ? cut() : undefined));
  const { loop, client, name } = await made(t, {}, { fetch, failures: 3, pause: 60_000 });
  const asked = { prior: [1, 3, 2], person: "ann", id: "s7", show: 2 };
  const d = await loop.decide(["mini", "beetle", "mustang"], asked);
  assert.deepEqual([d.shown, d.arm, d.version, d.fallback], [["beetle", "mustang"], "fallback", null, true]);
  assert.match(d.id, /^s7-fallback-[0-9a-f]{16}$/);
  assert.equal((await loop.decide(["mini", "beetle", "mustang"], asked)).id, d.id);
  const next = await loop.decide(["mini", "beetle", "mustang"], { after: d });
  assert.deepEqual(next.shown, ["mini"]);
  assert.equal(calls.length, 3);
  await loop.decide(["mini"]); // the server did not answer three times in a row: it is not asked
  assert.equal(calls.length, 3);
  away = false;
  assert.equal((await loop.feedback(d.id, { better: ["mustang"] })).status, "applied");
  assert.deepEqual(calls.slice(3), [`/v1/loops/${name}/records`, `/v1/loops/${name}/feedback`]);
  assert.equal(await client.tellFallbacks(), 2); // what nobody answered
  assert.equal(await client.tellFallbacks(), 0);
  const { decision, feedback } = await events(name);
  assert.deepEqual([decision, feedback], [3, 1]);
  const nobody = new Client({ url: "http://127.0.0.1:9" }).loop("cars");
  const nothing = await nobody.decide(undefined, { prior: { a: 1, b: 2 } });
  assert.deepEqual(nothing.shown, ["b", "a"]);
});

test("the order of a fallback is that of a control list", async () => {
  const loop = new Client({ url: "http://127.0.0.1:9", timeout: 1 }).loop("cars");
  const shown = async (candidates: unknown[], prior?: object) =>
    (await loop.decide(candidates as string[], prior === undefined ? {} : { prior: prior as never })).shown;
  assert.deepEqual(await shown(["a", "b", "c", "a"]), ["a", "b", "c"]);
  assert.deepEqual(await shown(["a", "b", "c"], { b: 1, c: 3 }), ["c", "a", "b"]); // a counts as average
  assert.deepEqual(await shown(["a", "b", "c"], { a: 0, b: 0, c: Number.NaN }), ["a", "b", "c"]);
  assert.deepEqual(await shown(["a", "b", "c"], [1, 2]), ["a", "b", "c"]); // not one for each
  assert.deepEqual(await shown(["a", "b"], [1e308, -1e308]), ["a", "b"]); // no scores that a server takes
  assert.deepEqual(await shown([{ id: "x" }, { id: "y" }], [1, 2]), ["y", "x"]);
  const hits = [{ _id: "x", _score: 1, _source: {} }, { _id: "y", _score: 7, _source: {} }];
  assert.deepEqual(await shown(hits), ["y", "x"]);
});

test("a token lets a page report clicks on its decision, and nothing else", async (t) => {
  const { loop, name } = await made(t);
  const d = await loop.decide();
  const click = async (token: string, item: string) => {
    const body = JSON.stringify({ token, decision: d.id, item });
    const response = await fetch(`${url}/v1/loops/${name}/clicks`, { method: "POST", body });
    return ((await response.json()) as { status: string | number }).status;
  };
  const token = await loop.pageToken(d);
  assert.equal(await click(token, d.shown[1]!), "applied");
  assert.equal(await click(await loop.pageToken(d.id, 60), d.shown[1]!), "duplicate");
  assert.equal(await click(await loop.pageToken("another"), d.shown[2]!), 403);
  assert.equal(await click(await pageToken(key, "another", d.id), d.shown[2]!), 403);
  await assert.rejects(loop.pageToken(d, 0), /seconds: expected a number from 1 to 604800, got 0/);
  await assert.rejects(new Client({ url }).loop("cars").pageToken(d), /key: expected a client with a key/);
});

/** What does not compile: `tsc` fails where one of these lines would. */
export async function misuse(client: Client): Promise<void> {
  const loop = client.loop("cars");
  // @ts-expect-error: a thumb is up or down
  await loop.feedback("d1", { thumb: "sideways" });
  // @ts-expect-error: no such form
  await loop.feedback("d1", { click: ["mini"] });
  // @ts-expect-error: a list of names
  await loop.feedback("d1", { clicks: "mini" });
  // @ts-expect-error: no such field
  await loop.decide(["mini"], { persona: "ann" });
  // @ts-expect-error: a path without its loop
  await client.call("get", "/v1/loops/{loop}/promotions", { path: {} });
  // @ts-expect-error: no such route
  await client.call("get", "/v1/loop");
  const d = await loop.decide();
  // @ts-expect-error: a fallback has no version
  const version: number = d.version;
  // @ts-expect-error: the model's weights may be null
  const weight: number = (await loop.weights())["hp"];
  void [version, weight];
}

test("an option that makes no sense is named, and no key is sent in the open", () => {
  const wrong: [Options, RegExp][] = [
    [{ url: "rank.example" }, /^url: /], [{ url: "ftp://a.example" }, /^url: /], [{ url: `${url}?a=1` }, /^url: /],
    [{ url: "http://me:secret@a.example" }, /^url: expected no user and password in it, got some$/],
    [{ url: "http://rank.example", key }, /^url: expected https, got http to rank.example/],
    [{ key: "hk_short" }, /^key: .*not shown/], [{ timeout: 0 }, /^timeout: /], [{ patience: -1 }, /^patience: /],
    [{ failures: Number.NaN }, /^failures: /], [{ pause: Infinity }, /^pause: /],
  ];
  for (const [options, told] of wrong) {
    assert.throws(() => new Client(options), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, told);
      assert.ok(!error.message.includes(key) && !error.message.includes("secret"));
      return true;
    });
  }
  assert.ok(new Client({ url: "http://rank.example", key, insecure: true }));
});
