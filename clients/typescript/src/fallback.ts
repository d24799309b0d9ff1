/**
 * What `decide` returns if the server does not answer: the caller's own order, under an id of its own.
 *
 * The request may have been decided and logged while its answer was lost, so its id may stand for a list that nobody
 * saw. What was shown instead is told the server as a decision of its own before feedback on it.
 */

import type { components } from "./api.js";

type Schemas = components["schemas"];

/** A decision of the server. */
export type Decided = Schemas["Decision"] & { readonly fallback: false };

/** The caller's own order, shown because the server did not answer. */
export interface Fallback {
  readonly id: string;
  /** names of the items to show, best first */
  readonly shown: string[];
  readonly probability: null;
  readonly version: null;
  readonly arm: "fallback";
  readonly seq: null;
  readonly fallback: true;
  /** why it is one */
  readonly reason: string;
  /** what tells the server what was shown; null if nothing was */
  readonly telling: Schemas["Record"] | null;
  readonly deferred: boolean;
}

export type Decision = Decided | Fallback;

/** The fallback for a request without an answer; what `gone` names is left out. */
export async function fallBack(
  asked: string,
  given: Schemas["Decide"],
  identifier: string,
  gone: readonly string[],
  reason: string,
): Promise<Fallback> {
  const { candidates, prior, show, person, context, strict } = given;
  const names = candidates === undefined ? Object.keys(prior ?? {}) : namesOf(candidates, identifier);
  const shown = [...new Set(callerOrder(names, scores(names, candidates, prior)))]
    .filter((name) => !gone.includes(name))
    .slice(0, show ?? names.length);
  const beside = { person, context, prior, strict };
  const there = Object.entries(beside).filter(([, value]) => value !== undefined);
  const record = { candidates: candidates ?? names, shown, ...Object.fromEntries(there) };
  const bytes = new TextEncoder().encode(JSON.stringify([asked, record]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).slice(0, 8);
  const hex = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const id = `${asked.slice(0, 150)}-fallback-${hex}`;
  const telling = shown.length === 0 ? null : { ...record, id, time: Date.now() * 1000 };
  const nothing = { probability: null, version: null, arm: "fallback", seq: null, fallback: true } as const;
  return { id, shown, ...nothing, reason, telling, deferred: given.deferred ?? false };
}

/** Names by the caller's scores, highest first; those without a score count as average, ties keep the given order. */
export function callerOrder(names: readonly string[], prior: readonly (number | undefined)[]): string[] {
  const scores = names.map((_, i) => prior[i]).map((score) => (sound(score) ? score : undefined));
  const there = scores.filter((score) => score !== undefined);
  const largest = Math.max(0, ...there.map(Math.abs));
  if (largest === 0) return [...names];
  const mean = there.reduce((sum, score) => sum + score / largest, 0) / there.length;
  const heights = scores.map((score) => (score === undefined ? mean : score / largest));
  return names.map((_, i) => i).sort((i, j) => heights[j]! - heights[i]! || i - j).map((i) => names[i]!);
}

function sound(score: unknown): score is number {
  return typeof score === "number" && Math.abs(score) <= 1e100;
}

type Scores = readonly (number | undefined)[];

function scores(names: string[], candidates: unknown[] | undefined, prior: Schemas["Decide"]["prior"]): Scores {
  if (Array.isArray(prior)) return prior.length === names.length ? prior : [];
  if (prior !== undefined) return names.map((name) => prior[name]);
  return (candidates ?? []).map((each) => (isHit(each) && sound(each["_score"]) ? each["_score"] : undefined));
}

function namesOf(candidates: readonly unknown[], identifier: string): string[] {
  return candidates.map((each, i) => {
    if (typeof each !== "object" || each === null) return String(each);
    const row = each as Record<string, unknown>;
    return String(isHit(row) ? row["_id"] : (row[identifier] ?? row["id"] ?? i));
  });
}

/** Whether a candidate is a hit of a search engine. */
function isHit(each: unknown): each is Record<string, unknown> {
  return typeof each === "object" && each !== null && "_id" in each;
}

/** After `failures` failures in a row the server is not asked for `pause` milliseconds; then one request tries. */
export class Breaker {
  #inARow = 0;
  #until = 0;

  constructor(
    private readonly failures: number,
    private readonly pause: number,
  ) {}

  /** Whether the server should be asked now. */
  asks(): boolean {
    if (this.#inARow < this.failures) return true;
    if (Date.now() < this.#until) return false;
    this.#until = Date.now() + this.pause;
    return true;
  }

  note(answered: boolean): void {
    this.#inARow = answered ? 0 : this.#inARow + 1;
    this.#until = Date.now() + this.pause;
  }
}

/** The newest fallbacks, which the server does not know of yet. */
export class Untold {
  static readonly MOST = 1000;
  readonly #kept = new Map<string, { loop: string; fallback: Fallback }>();

  keep(loop: string, fallback: Fallback): void {
    const oldest = this.#kept.keys().next();
    if (this.#kept.size >= Untold.MOST && !oldest.done) this.#kept.delete(oldest.value);
    this.#kept.set(JSON.stringify([loop, fallback.id]), { loop, fallback });
  }

  find(loop: string, id: string): Fallback | undefined {
    return this.#kept.get(JSON.stringify([loop, id]))?.fallback;
  }

  drop(loop: string, id: string): void {
    this.#kept.delete(JSON.stringify([loop, id]));
  }

  forget(loop: string, person: string): void {
    for (const { fallback } of this.of(loop)) {
      if (fallback.telling?.person === person) this.drop(loop, fallback.id);
    }
  }

  of(loop?: string): { loop: string; fallback: Fallback }[] {
    return [...this.#kept.values()].filter((each) => loop === undefined || each.loop === loop);
  }
}
