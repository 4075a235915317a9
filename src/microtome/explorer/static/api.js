// The server's answers, and how they are asked for. Every request carries the token of the address and
// the page's number: two pages of one server don't mix.

/** @typedef {{message: string, hint?: string | null}} Problem */
/** @typedef {{disable?: boolean, single_heads?: boolean, depth?: boolean, decode?: boolean, score?: boolean, save?: boolean, why?: Record<string, string>}} Can */
/** @typedef {{edit: string, order: number[], disabled: [number, number][], layers: number, base_layers?: number, other: string[], problem: Problem | null}} Stack */
/** @typedef {{task: string, n: number, primary: string, kind: string, notes: string[]}} Data */
/** @typedef {{model: string | null, family: string, job: string, layers: number, heads: number, labels: string[], max_length: number, mask: string | null, can: Can, most_layers?: number, shared?: boolean, data: Data | null, second: string | null, out: string, operate: string[] | null, run: any}} Model */
/** @typedef {{label: string, share: number, token?: number}} Prediction */
/** @typedef {{depth: number, tokens: string[], right: boolean[], control?: boolean[]}} Depth */
/** @typedef {"labels" | "number" | "tags" | "span" | "similarity" | "words" | "none"} Kind */
/** @typedef {{kind: Kind, tokens: string[], before: Prediction[], after: Prediction[], depths: Depth[], readout: string}} Reading */
/** @typedef {{value: number, low: number, high: number}} Estimate */
/** @typedef {{base: Estimate, now: Estimate, change: number, change_low: number, change_high: number, n: number, metric: string, latency_ms: {base: number, now: number}, seconds: number}} Score */
/** @typedef {{edit: string, score: number, change: number | null, change_low: number | null, change_high: number | null, latency_ms: number | null, speed: number | null, layers?: number, healed?: boolean, on_frontier?: boolean}} Cut */
/** @typedef {{layers: number, heads: number, tokens: number, of: number, values: Uint8Array}} Maps of: tokens of the text, more where maps are reduced */
/** @typedef {{name: string, passed: boolean, detail: string}} Check */

const TOKEN = new URLSearchParams(location.search).get("token") ?? "";
const PAGE = [...crypto.getRandomValues(new Uint8Array(8))]
  .map((n) => n.toString(16).padStart(2, "0"))
  .join("");
const HEADERS = { "X-Microtome-Token": TOKEN, "X-Microtome-Page": PAGE };

/** What the server refused, in its words. */
export class Refused extends Error {
  /** @param {number} status @param {Partial<Problem & {kind: string}>} problem */
  constructor(status, problem) {
    super(problem.message ?? `the server answered ${status}`);
    this.status = status;
    this.hint = problem.hint ?? "";
  }
}

/** @param {unknown} error */
export const isAborted = (error) =>
  (error instanceof DOMException && error.name === "AbortError") ||
  (error instanceof Refused && error.status === 409);

/** @param {string} path @param {RequestInit} init */
async function ask(path, init) {
  let answer;
  try {
    answer = await fetch(`api/${path}`, { ...init, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (isAborted(error)) throw error;
    dispatchEvent(new CustomEvent("gone"));
    throw new Refused(0, {
      message: "the server doesn't answer",
      hint: "run microtome explore again",
    });
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, body.error ?? {});
}

/** @param {string} path @param {AbortSignal} [signal] */
export async function get(path, signal) {
  return (await ask(path, { headers: HEADERS, signal })).json();
}

/** @param {string} path @param {object} body @param {AbortSignal} [signal] */
function send(path, body, signal) {
  const headers = { ...HEADERS, "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** @param {string} path @param {object} body @param {AbortSignal} [signal] */
export async function post(path, body, signal) {
  return (await send(path, body, signal)).json();
}

/**
 * All attention maps of a text: one byte per value, 255 is 1.
 * @param {object} body @param {AbortSignal} [signal] @returns {Promise<Maps>}
 */
export async function attention(body, signal) {
  const answer = await send("attention", body, signal);
  const [layers, heads, tokens] = (answer.headers.get("X-Shape") ?? "").split(",").map(Number);
  const of = Number(answer.headers.get("X-Tokens") ?? tokens);
  return { layers, heads, tokens, of, values: new Uint8Array(await answer.arrayBuffer()) };
}

/** Only the newest of a kind of request matters: asking again drops the one under way. */
export class Latest {
  /** @type {AbortController | null} */
  #under_way = null;

  /** @template T @param {(signal: AbortSignal) => Promise<T>} work @returns {Promise<T | null>} null if dropped */
  async run(work) {
    this.#under_way?.abort();
    const mine = (this.#under_way = new AbortController());
    try {
      const done = await work(mine.signal);
      return mine.signal.aborted ? null : done;
    } catch (error) {
      if (mine.signal.aborted || isAborted(error)) return null;
      throw error;
    }
  }
}
