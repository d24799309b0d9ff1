/** Requests over `fetch`: with a time limit, and again where the server is away, busy or limits the rate. */

import { ProblemError, UnansweredError, problemOf } from "./errors.js";

export interface Options {
  /** the server's address; default http://127.0.0.1:8710 */
  url?: string;
  /** the API key; without one if none was ever made */
  key?: string;
  /** milliseconds after which `decide` returns the caller's own order; default 250 */
  timeout?: number;
  /** milliseconds for which all other requests are repeated until they are answered; default 10,000 */
  patience?: number;
  /** after so many decisions in a row without an answer, the server is not asked for `pause`; default 3 */
  failures?: number;
  /** milliseconds; default 1,000 */
  pause?: number;
  /** whether a key may be sent over plain http to another machine */
  insecure?: boolean;
  /** in place of the global `fetch` */
  fetch?: typeof fetch;
}

export interface Sent {
  method: string;
  /** from /v1 on, encoded, with its query */
  path: string;
  body?: unknown;
}

export interface How {
  /** ends the request: the call then throws the signal's reason */
  signal?: AbortSignal | undefined;
  /** whether it may be sent again if an earlier one may have arrived; default true */
  repeat?: boolean;
  /** whether it may have to read a whole log, which takes up to ten minutes */
  long?: boolean;
}

const LONG = 600_000;
const KEY = /^hk_[a-z0-9]{8}_[A-Za-z0-9_-]{43}$/;
const HERE = /^(localhost|127(\.\d+){3}|\[::1\])$/;

export class Transport {
  readonly url: string;
  readonly key: string | undefined;
  readonly timeout: number;
  readonly patience: number;
  readonly #fetch: typeof fetch;

  constructor(options: Options) {
    const { url = "http://127.0.0.1:8710", insecure = false } = options;
    this.key = options.key?.trim();
    this.url = checkUrl(url, this.key, insecure);
    this.timeout = positive("timeout", options.timeout ?? 250);
    this.patience = positive("patience", options.patience ?? 10_000);
    this.#fetch = options.fetch ?? fetch;
  }

  /** The value that answers a request, which is sent once. Throw ProblemError, UnansweredError, the signal's reason. */
  async once({ method, path, body }: Sent, timeout: number, signal?: AbortSignal): Promise<unknown> {
    const where = `${method} ${path.split("?")[0]}`;
    const headers: Record<string, string> = { accept: "application/json" };
    if (this.key !== undefined) headers["authorization"] = `Bearer ${this.key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    signal?.throwIfAborted();
    const ending = new AbortController();
    const abort = () => ending.abort(signal?.reason);
    const timer = setTimeout(() => ending.abort(), timeout);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const content = body === undefined ? null : JSON.stringify(body);
      const init: RequestInit = { method, headers, body: content, signal: ending.signal, redirect: "error" };
      const response = await this.#fetch(this.url + path, init);
      const text = await response.text();
      const value = parsed(text);
      if (!response.ok) {
        const wait = Number(response.headers.get("retry-after") ?? 0);
        throw new Refused(problemOf(response.status, where, value), Number.isFinite(wait) ? wait * 1000 : 0);
      }
      if (value === undefined) {
        throw new UnansweredError(`${where}: expected an answer of heedful's, got no JSON; is the url the server's?`);
      }
      return value;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Refused || error instanceof UnansweredError) throw error;
      const late = ending.signal.aborted;
      const why = late ? `no answer within ${timeout} ms` : `no connection to ${this.url}: ${said(error)}`;
      throw new UnansweredError(`${where}: ${why}`, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  /** The value that answers a request, which is sent again until it is answered, or `patience` has run out. */
  async ask(sent: Sent, { signal, repeat = true, long = false }: How = {}): Promise<unknown> {
    const until = Date.now() + this.patience;
    for (let pause = 50; ; pause = Math.min(2 * pause, 2000)) {
      const left = until - Date.now();
      const share = long ? LONG : Math.max(Math.min(left, Math.max(this.patience / 3, this.timeout)), 1);
      try {
        return await this.once(sent, share, signal);
      } catch (error) {
        const refused = error instanceof Refused ? error : undefined;
        if (refused === undefined && !(error instanceof UnansweredError)) throw error;
        const status = refused?.problem.status ?? 0;
        const busy = status === 429 || status === 503;
        const again = busy || (repeat && (refused === undefined || [408, 502, 504].includes(status)));
        const wait = Math.max(refused?.wait ?? 0, pause * (0.5 + Math.random() / 2));
        if (!again || Date.now() + wait + 20 > until) throw refused?.problem ?? error;
        await sleep(wait, signal);
      }
    }
  }
}

/** A problem, with the milliseconds to wait before another try. */
export class Refused extends Error {
  constructor(
    readonly problem: ProblemError,
    readonly wait: number,
  ) {
    super(problem.message);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function said(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** The address without a final slash. Throw TypeError, without the key, if a key would not be safe there. */
function checkUrl(url: string, key: string | undefined, insecure: boolean): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw new TypeError(`url: expected one such as https://rank.example, got ${JSON.stringify(url)}`);
  }
  if (!["http:", "https:"].includes(parts.protocol) || parts.search || parts.hash) {
    throw new TypeError(`url: expected one such as https://rank.example, got ${JSON.stringify(url)}`);
  }
  if (parts.username || parts.password) throw new TypeError("url: expected no user and password in it, got some");
  if (key !== undefined && !KEY.test(key)) {
    throw new TypeError("key: expected hk_, 8 characters, _ and 43 more, got something else (not shown)");
  }
  if (key !== undefined && parts.protocol === "http:" && !HERE.test(parts.hostname) && !insecure) {
    throw new TypeError(`url: expected https, got http to ${parts.hostname}, where anyone on the way can read the key`);
  }
  return url.replace(/\/+$/, "");
}

export function positive(name: string, value: number): number {
  if (!(Number.isFinite(value) && value > 0)) {
    throw new TypeError(`${name}: expected a number above 0, got ${JSON.stringify(value)}`);
  }
  return value;
}
