/** A client of a heedful server. Its types are made from the server's OpenAPI document (`api.ts`). */

import type { components, paths } from "./api.js";
import { ProblemError, UnansweredError } from "./errors.js";
import { Breaker, Untold, fallBack } from "./fallback.js";
import type { Decision, Fallback } from "./fallback.js";
import { pageToken } from "./page-token.js";
import { Refused, Transport, positive } from "./transport.js";
import type { How, Options } from "./transport.js";

export type { components, operations, paths } from "./api.js";
export { ProblemError, UnansweredError } from "./errors.js";
export type { Problem } from "./errors.js";
export type { Decided, Decision, Fallback } from "./fallback.js";
export { pageToken } from "./page-token.js";
export type { Options } from "./transport.js";

type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "delete";
/** what became of an event; a rejection is an answer, too */
export type Answer = Schemas["Answer"];
/** one form of feedback, such as { clicks: ["mini"] } (docs/feedback.md) */
export type Form = Omit<Schemas["Feedback"], "decision" | "id" | "time">;
export type Item = Record<string, unknown>;
type Time = Schemas["Feedback"]["time"];

/** Ends a call: it then throws the signal's reason. */
export interface Ending {
  signal?: AbortSignal;
}

/** A request for a decision; `after` is the one for the page before. */
export interface Request extends Omit<Schemas["Decide"], "candidates" | "after">, Ending {
  after?: string | Decision;
}

export interface Event extends Ending {
  /** the event's id, under which it counts once; default a new one */
  id?: string;
  /** when it happened: microseconds since 1970, or ISO 8601; default now */
  time?: Time;
}

/** The routes that take a method, what they take, and what they give. */
type With<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : undefined;
type Part<O, Name extends string> = O extends { parameters: { [name in Name]?: infer Q } } ? Q : undefined;
type Good = 200 | 201;
type Given<O> = { [S in Good]: O extends { responses: { [_ in S]: { content: infer C } } } ? C : never }[Good];
type Json<O> = Given<O> extends { "application/json": infer B } ? B : never;

export interface Call<O> extends How {
  path?: Part<O, "path">;
  query?: Part<O, "query">;
  body?: Body<O>;
}

export class Client {
  readonly #transport: Transport;
  readonly #breaker: Breaker;
  readonly #untold = new Untold();

  /** A client of a server; nothing is sent yet. Throw TypeError, naming the option, if one makes no sense. */
  constructor(options: Options = {}) {
    this.#transport = new Transport(options);
    this.#breaker = new Breaker(
      positive("failures", options.failures ?? 3),
      positive("pause", options.pause ?? 1000),
    );
  }

  /** The loop called `name`; `identifier` is the attribute that names candidates that are objects. */
  loop(name: string, { identifier = "id" }: { identifier?: string } = {}): Loop {
    return new Loop(this, this.#transport, this.#breaker, this.#untold, name, identifier);
  }

  /** The names of the loops that the key may see. */
  async loops(ending: Ending = {}): Promise<string[]> {
    return (await this.call("get", "/v1/loops", ending)).loops;
  }

  /** Make a loop, and return it. */
  async create(loop: Schemas["NewLoop"], ending: Ending = {}): Promise<Loop> {
    const made = await this.call("post", "/v1/loops", { body: loop, repeat: false, long: true, ...ending });
    return this.loop(made.name, { identifier: made.identifier });
  }

  /** Whether the server answers. */
  async healthy(ending: Ending = {}): Promise<boolean> {
    try {
      const timeout = Math.max(this.#transport.timeout, 1000);
      await this.#transport.once({ method: "GET", path: "/healthz" }, timeout, ending.signal);
      return true;
    } catch (error) {
      if (error instanceof Refused || error instanceof UnansweredError) return false;
      throw error;
    }
  }

  /** The answer of any route of the server that speaks JSON, typed by its OpenAPI document. */
  async call<M extends Method, P extends With<M>>(
    method: M,
    path: P,
    call: Call<paths[P][M]> = {},
  ): Promise<Json<paths[P][M]>> {
    const { path: parts, query, body, ...how } = call as How & { path?: object; query?: object; body?: unknown };
    const sent = { method: method.toUpperCase(), path: pathOf(path, parts ?? {}, query ?? {}), body };
    return (await this.#transport.ask(sent, how)) as Json<paths[P][M]>;
  }

  /** Tell the server what was shown while it did not answer, deferred decisions aside; return how many it took. */
  async tellFallbacks(ending: Ending = {}): Promise<number> {
    let count = 0;
    for (const { loop, fallback } of this.#untold.of()) {
      if (fallback.deferred) continue;
      try {
        count += Number(await this.loop(loop).tell(fallback, ending));
      } catch (error) {
        if (!(error instanceof ProblemError)) throw error;
        this.#untold.drop(loop, fallback.id); // it will be refused again
      }
    }
    return count;
  }
}

/** A loop on a server; `Client.loop` makes it. */
export class Loop {
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #breaker: Breaker;
  readonly #untold: Untold;

  constructor(
    client: Client,
    transport: Transport,
    breaker: Breaker,
    untold: Untold,
    readonly name: string,
    readonly identifier: string,
  ) {
    this.#client = client;
    this.#transport = transport;
    this.#breaker = breaker;
    this.#untold = untold;
  }

  /**
   * What to show, best first, within `timeout` milliseconds: if the server does not answer in time, the caller's own
   * order (`fallback` is true). Throw ProblemError if the request is wrong.
   */
  async decide(
    candidates?: Schemas["Decide"]["candidates"],
    { signal, after, ...given }: Request = {},
  ): Promise<Decision> {
    const id = given.id ?? newId();
    const untold = after === undefined ? undefined : this.#find(after);
    const before = typeof after === "object" ? after : untold;
    const asked: Schemas["Decide"] = { ...given, id };
    if (candidates !== undefined) asked.candidates = candidates;
    let reason = "the server did not answer lately";
    if (this.#breaker.asks()) {
      const until = Date.now() + this.#transport.timeout;
      const send = (what: string, body: unknown) =>
        this.#transport.once({ method: "POST", path: this.#path(what), body }, Math.max(until - Date.now(), 1), signal);
      try {
        if (untold?.telling) {
          await send("records", untold.telling); // the server has to know the page before
          this.#untold.drop(this.name, untold.id);
        }
        const begins = after === undefined || untold?.telling === null;
        const found = await send("decisions", begins ? asked : { ...asked, after: idOf(after) });
        this.#breaker.note(true);
        return { ...(found as Schemas["Decision"]), fallback: false };
      } catch (error) {
        const problem = error instanceof Refused ? error.problem : error;
        const unanswered = problem instanceof UnansweredError;
        if (!unanswered && !(problem instanceof ProblemError)) throw problem;
        this.#breaker.note(!unanswered);
        if (!unanswered && !AWAY.has(problem.status) && problem.status < 500) throw problem;
        reason = problem.message;
      }
    }
    const fallback = await fallBack(id, asked, this.identifier, before?.shown ?? [], reason);
    this.#untold.keep(this.name, fallback);
    return fallback;
  }

  /** Log a decision that another system made, so that feedback on it teaches. */
  async record(record: Schemas["Record"], ending: Ending = {}): Promise<Schemas["Decision"]> {
    return this.#call("post", "/v1/loops/{loop}/records", { body: { id: newId(), ...record }, ...ending });
  }

  /** Say that a deferred decision was shown after all. */
  async activate(decision: string | Decision, { time, ...ending }: Omit<Event, "id"> = {}): Promise<Answer> {
    const untold = this.#find(decision);
    if (untold?.telling) {
      const { seq, version } = await this.#tell(untold, ending);
      return { status: "applied", event: untold.id, seq, version, late: false, learned: false, reason: null };
    }
    const body = { decision: idOf(decision), ...(time === undefined ? {} : { time }) };
    return this.#event(idOf(decision), () => this.#call("post", "/v1/loops/{loop}/activate", { body, ...ending }));
  }

  /**
   * Learn from what a person answered: feedback(d, { clicks: ["mini"] }). It is sent again under the same id for up to
   * `patience` milliseconds, and counts once. Throw UnansweredError, which has the id, if it is not known whether the
   * server has it.
   */
  async feedback(decision: string | Decision, form: Form, { signal, ...event }: Event = {}): Promise<Answer> {
    const ending = signal ? { signal } : {};
    const body: Schemas["Feedback"] = { ...form, decision: idOf(decision), id: event.id ?? newId() };
    if (event.time !== undefined) body.time = event.time;
    await this.#tellFirst(decision, ending);
    const ask = () => this.#call("post", "/v1/loops/{loop}/feedback", { body, ...ending });
    return (await this.#event(idOf(body as { id: string }), ask)) as Answer;
  }

  /** Learn from many events, at most a thousand; the answers are in their order. */
  async feedbackMany(events: Schemas["Feedback"][], ending: Ending = {}): Promise<Answer[]> {
    const body = events.map((event) => ({ id: newId(), ...event }));
    for (const { decision } of events) await this.#tellFirst(decision, ending);
    return (await this.#call("post", "/v1/loops/{loop}/feedback", { body, ...ending })) as Answer[];
  }

  /** Take one piece of feedback back, given its answer or event id. */
  async undo(event: string | Answer, { id, signal }: Omit<Event, "time"> = {}): Promise<Answer> {
    const target = typeof event === "string" ? event : event.event;
    const body = { event: target, id: id ?? `undo-${target}` };
    const ending = signal ? { signal } : {};
    return this.#event(body.id, () => this.#call("post", "/v1/loops/{loop}/undo", { body, ...ending }));
  }

  /** Take the model back to its version `to`. */
  async rollback(
    to: number,
    { id, reason, ...ending }: Omit<Event, "time"> & { reason?: string } = {},
  ): Promise<Schemas["RolledBack"]> {
    const body = { to, id: id ?? newId(), ...(reason === undefined ? {} : { reason }) };
    return this.#call("post", "/v1/loops/{loop}/rollback", { body, ...ending });
  }

  /** What the loop has about a person: the events that `forget` would erase, and names that are spelt alike. */
  async eventsOf(person: string, ending: Ending = {}): Promise<Schemas["PersonEvents"]> {
    const how = { path: { loop: this.name, person }, long: true, ...ending };
    return this.#client.call("get", "/v1/loops/{loop}/people/{person}", how);
  }

  /** Erase a person: every decision made for them and every answer to it. */
  async forget(person: string, ending: Ending = {}): Promise<Schemas["Forgotten"]> {
    this.#untold.forget(this.name, person);
    return this.#call("post", "/v1/loops/{loop}/forget", { body: { person }, repeat: false, long: true, ...ending });
  }

  /** Put items on offer, new or changed; return how many were. A thousand go into one request. */
  async putItems(items: Item[], ending: Ending = {}): Promise<number> {
    let put = 0;
    for (let i = 0; i < items.length; i += 1000) {
      const body = items.slice(i, i + 1000);
      put += (await this.#call("put", "/v1/loops/{loop}/items", { body, long: true, ...ending })).put;
    }
    return put;
  }

  /** Take an item off offer; return whether it was on offer. */
  async withdraw(item: string, ending: Ending = {}): Promise<boolean> {
    const how = { path: { loop: this.name, item }, repeat: false, ...ending };
    return (await this.#client.call("delete", "/v1/loops/{loop}/items/{item}", how)).withdrawn;
  }

  /** The names of all items on offer. */
  async items(ending: Ending = {}): Promise<string[]> {
    const names = new Set<string>();
    for (let start = 0, total = 1; start < total; ) {
      const query = { start, limit: 1000 };
      const page = await this.#call("get", "/v1/loops/{loop}/items", { query, ...ending });
      for (const name of page.items) names.add(name);
      [start, total] = [start + Math.max(page.items.length, 1), page.total];
    }
    return [...names];
  }

  /** The server's description of the loop. */
  async about(ending: Ending = {}): Promise<Schemas["About"]> {
    return this.#call("get", "/v1/loops/{loop}", ending);
  }

  /** All candidates, best first by the current model; nothing is logged. */
  async rank(asked: Schemas["Rank"] = {}, ending: Ending = {}): Promise<string[]> {
    return (await this.#call("post", "/v1/loops/{loop}/rank", { body: asked, ...ending })).ranking;
  }

  /** The weight of each feature by name, for everybody or for one person. */
  async weights(person?: string, ending: Ending = {}): Promise<Schemas["Weights"]["weights"]> {
    const query = person === undefined ? {} : { person };
    return (await this.#call("get", "/v1/loops/{loop}/weights", { query, ...ending })).weights;
  }

  /** Why an item of a decision, by default the first shown, had its score. */
  async why(
    decision: string | Decision,
    item?: string,
    { top = 10, ...ending }: Ending & { top?: number } = {},
  ): Promise<Schemas["Why"]> {
    const [path, query] = [{ loop: this.name, id: idOf(decision) }, item === undefined ? { top } : { item, top }];
    return this.#client.call("get", "/v1/loops/{loop}/decisions/{id}/why", { path, query, long: true, ...ending });
  }

  /** What the loop learned, measured over its newest `last` decisions. */
  async report({ last = 10_000, ...ending }: Ending & { last?: number } = {}): Promise<Schemas["Report"]> {
    return this.#call("get", "/v1/loops/{loop}/report", { query: { last }, long: true, ...ending });
  }

  /** Tell the server what a fallback showed; return whether there was something to tell. Feedback does so by itself. */
  async tell(decision: string | Decision, ending: Ending = {}): Promise<boolean> {
    const untold = this.#find(decision);
    if (!untold?.telling) return false;
    await this.#tell(untold, ending);
    return true;
  }

  /**
   * A token with which a page may report clicks on `decision` and do nothing else. It is valid for `seconds`, at most a
   * week, and ends with the client's key, which needs the scope `feedback`. No request is sent.
   */
  async pageToken(decision: string | Decision, seconds = 3600): Promise<string> {
    const { key } = this.#transport;
    if (key === undefined) throw new TypeError("key: expected a client with a key, which signs it, got one without");
    return pageToken(key, this.name, idOf(decision), seconds);
  }

  async #tell(fallback: Fallback, ending: Ending): Promise<Schemas["Decision"]> {
    const body = fallback.telling!;
    const told = await this.#call("post", "/v1/loops/{loop}/records", { body, ...ending });
    this.#untold.drop(this.name, fallback.id);
    return told;
  }

  async #tellFirst(decision: string | Decision, ending: Ending): Promise<void> {
    const untold = this.#find(decision);
    if (untold?.telling && !untold.deferred) await this.#tell(untold, ending);
  }

  #find(decision: string | Decision): Fallback | undefined {
    const given = typeof decision === "object" && decision.fallback ? decision : undefined;
    return this.#untold.find(this.name, idOf(decision)) ?? given;
  }

  /** The answer to an event, also if it was rejected. */
  async #event<T>(id: string, ask: () => Promise<T>): Promise<T | Answer> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ProblemError && error.problem.answer !== undefined) return error.problem.answer;
      if (error instanceof UnansweredError) error.event = id;
      throw error;
    }
  }

  #call<M extends Method, P extends With<M>>(method: M, path: P, call: Call<paths[P][M]>): Promise<Json<paths[P][M]>> {
    return this.#client.call(method, path, { ...call, path: { loop: this.name } } as Call<paths[P][M]>);
  }

  #path(what: string): string {
    return pathOf("/v1/loops/{loop}/{what}", { loop: this.name, what }, {});
  }
}

const AWAY = new Set([408, 429]);

function idOf(decision: string | { readonly id: string }): string {
  return typeof decision === "string" ? decision : decision.id;
}

/** A new id, in the order of time, as in a UUID of version 7. */
function newId(): string {
  const random = crypto.getRandomValues(new Uint8Array(10));
  const time = Date.now().toString(16).padStart(12, "0");
  return time + [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The path of a request, with names encoded. `fetch` reads "." and ".." as folders, also where they are encoded. */
function pathOf(template: string, parts: object, query: object): string {
  const names = parts as Record<string, string>;
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const text = names[name];
    if (typeof text !== "string") throw new TypeError(`${name}: expected a text, got ${JSON.stringify(text)}`);
    if (/^\.\.?$/.test(text)) throw new TypeError(`${name}: expected a name that fetch can send, got "${text}"`);
    return encodeURIComponent(text);
  });
  const given = Object.entries(query as Record<string, unknown>).filter(([, value]) => value !== undefined);
  const said = given.map(([name, value]) => [name, String(value)]);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(said)}`;
}
