/** What can go wrong: the server said what is wrong, or did not answer. */

import type { components } from "./api.js";

export type Problem = components["schemas"]["Problem"];

/** The server's answer that something is wrong, as problem details (RFC 9457). `message` is its `detail`. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  /** HTTP status: 422 */
  readonly status: number;
  /** kind of problem: "bad-input"; "" if it was no server of heedful that answered */
  readonly kind: string;
  /** the field that is to blame, if it is one */
  readonly field: string | undefined;
  /** all that the server said of it */
  readonly problem: Problem;

  constructor(status: number, problem: Problem) {
    super(problem.detail);
    this.status = status;
    this.kind = problem.type.startsWith(PREFIX) ? problem.type.slice(PREFIX.length) : "";
    this.field = problem.field;
    this.problem = problem;
  }
}

const PREFIX = "urn:heedful:problem:";

/** The server did not answer, in time or at all. `cause` is what `fetch` threw. */
export class UnansweredError extends Error {
  override readonly name = "UnansweredError";
  /** for an event, its id: sent again under it, it counts once */
  event: string | undefined;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}

/** The problem in an answer; one that says the status if the answer is something else. */
export function problemOf(status: number, where: string, body: unknown): ProblemError {
  const given = (typeof body === "object" && body !== null ? body : {}) as Partial<Problem>;
  const title = given.title ?? "";
  const detail = given.detail ?? `${where}: the server answered ${status}`;
  return new ProblemError(status, { ...given, type: given.type ?? "", title, status, detail });
}
