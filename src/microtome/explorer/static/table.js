// What is on the table: the edit, its past and future, the text. It lives in the address's fragment,
// so that a copied address shows the same. Parts listen to "edit", "text" and "problem".

import { post } from "./api.js";
import { orderOf, slicesOf } from "./slices.js";

/** @typedef {import("./api.js").Stack} Stack */
/** @typedef {import("./api.js").Problem} Problem */
/** @typedef {import("./slices.js").Slice} Slice */

export class Table extends EventTarget {
  /** @type {Stack} */
  stack = { edit: "", order: [], disabled: [], layers: 0, other: [], problem: null };
  /** @type {Problem | null} */
  problem = null;
  text = "";
  pair = "";
  /** @type {string[]} */
  #past = [];
  /** @type {string[]} */
  #future = [];
  /** One change after the other: each sees the stack that the one before left. */
  #turn = Promise.resolve();

  get edit() {
    return this.stack.edit;
  }

  get slices() {
    return slicesOf(this.stack);
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  /** Takes what the address says, or the model as it is. @param {string} [text] if the address has none */
  async open(text = "") {
    const fragment = new URLSearchParams(location.hash.slice(1));
    this.text = fragment.get("text") ?? text;
    this.pair = fragment.get("pair") ?? "";
    const wanted = fragment.get("edit") ?? "";
    const whole = await post("edit", { edit: "" });
    const given = wanted ? await post("edit", { edit: wanted }) : whole;
    this.stack = given.problem ? whole : given;
    this.problem = given.problem;
    addEventListener("hashchange", () => this.#follow());
    this.#tell("edit", "text", "problem");
  }

  /** An edit as text, replacing the one on the table. @param {string} edit */
  put(edit) {
    return this.#change(() => post("edit", { edit }));
  }

  /**
   * A change to the slices; edits that are neither an order nor disabled heads stay before it.
   * @param {(slices: Slice[]) => Slice[]} change
   */
  operate(change) {
    return this.#change(() =>
      post("stack", { ...orderOf(change(this.slices)), other: this.stack.other }),
    );
  }

  undo() {
    return this.#travel(this.#past, this.#future);
  }

  redo() {
    return this.#travel(this.#future, this.#past);
  }

  /** @param {string} text @param {string} pair */
  write(text, pair) {
    if (text === this.text && pair === this.pair) return;
    [this.text, this.pair] = [text, pair];
    this.#remember();
    this.#tell("text");
  }

  /** @param {string[]} from @param {string[]} to */
  #travel(from, to) {
    return this.#inTurn(async () => {
      const edit = from.pop();
      if (edit === undefined) return;
      to.push(this.edit);
      this.#take(await post("edit", { edit }));
    });
  }

  /** @param {() => Promise<any>} ask */
  #change(ask) {
    return this.#inTurn(async () => {
      const before = this.edit;
      const given = await ask();
      if (!given.problem && given.edit !== before) {
        this.#past.push(before);
        this.#future.length = 0;
      }
      this.#take(given);
    });
  }

  /** @param {() => Promise<void>} work */
  #inTurn(work) {
    const done = this.#turn.then(work).catch((error) => {
      this.problem = { message: error.message, hint: error.hint };
      this.#tell("problem");
    });
    this.#turn = done;
    return done;
  }

  /** @param {Stack} given */
  #take(given) {
    this.problem = given.problem;
    const changed = !given.problem && given.edit !== this.edit;
    if (!given.problem) this.stack = given;
    if (changed) this.#remember();
    this.#tell("problem", ...(changed ? ["edit"] : []));
  }

  #remember() {
    const parts = Object.entries({ edit: this.edit, text: this.text, pair: this.pair });
    const fragment = new URLSearchParams(parts.filter(([, value]) => value)).toString();
    history.replaceState(null, "", `${location.pathname}${location.search}#${fragment}`);
  }

  /** The address was changed by hand; a jump to a part of the page changes it too. */
  #follow() {
    if (document.getElementById(location.hash.slice(1))) return this.#remember();
    const fragment = new URLSearchParams(location.hash.slice(1));
    this.write(fragment.get("text") ?? this.text, fragment.get("pair") ?? "");
    void this.put(fragment.get("edit") ?? "");
  }

  /** @param {...string} names */
  #tell(...names) {
    for (const name of names) this.dispatchEvent(new Event(name));
  }
}
