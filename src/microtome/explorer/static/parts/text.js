// The text on the table: typed or a row of the data, what base and edited model answer, and what each
// depth would say through the output layer.

import { get, Latest, post } from "../api.js";
import { at, h, replace, said, scroll, tool } from "../elements.js";
import { percent } from "../numbers.js";
import { answers } from "./answers.js";

/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../api.js").Reading} Reading */
/** @typedef {import("../table.js").Table} Table */

const PAIRED = ["embedding", "reranking", "spans"]; // jobs whose second text is always shown
const PAUSE = 250; // ms without a key before a text is read
/** What the depths are read through, by its name. @type {Record<string, string>} */
const READOUTS = {
  mlm: "the output layer",
  fit: "an output layer that was fitted to the model",
  tied: "the nearest word embedding, as the model has no output layer for words",
};

export class TextPart {
  #latest = new Latest();
  #row = -1;
  #pause = 0;
  /** Goes up with every key and every row: a row that comes late replaces nothing newer. */
  #changes = 0;
  #goldOf = ""; // the text that the gold label belongs to
  #gold = "";

  /** @param {Table} table @param {Model} model */
  constructor(table, model) {
    this.table = table;
    this.model = model;
    const limit = 20000;
    this.text = h("textarea", {
      id: "text-input",
      rows: "2",
      maxlength: limit,
      "data-key": "text",
      oninput: () => this.#typed(),
    });
    this.pair = h("textarea", {
      id: "pair-input",
      rows: "1",
      maxlength: limit,
      "data-key": "pair",
      oninput: () => this.#typed(),
    });
    this.pairBox = h(
      "div",
      { class: "field" },
      h("label", { for: "pair-input" }, "Second text"),
      this.pair,
    );
    this.addPair = h(
      "button",
      { type: "button", class: "link", onclick: () => (this.#openPair(), this.pair.focus()) },
      "Add a second text",
    );
    this.pairBox.hidden = !PAIRED.includes(model.job);
    this.addPair.hidden = !this.pairBox.hidden;
    this.gold = h("p", { class: "note gold" });
    this.answers = h("div", { class: "answers", "aria-live": "off" });
    this.control = h("input", { type: "checkbox", id: "control", onchange: () => this.read() });
    this.depths = h("div", {});
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.number = h("input", {
      type: "number",
      id: "row-number",
      min: "0",
      step: "1",
      value: "0",
      onchange: () => this.take(Number(this.number.value)),
    });
    const section = at("text");
    section.hidden = false;
    section.append(
      h(
        "div",
        { class: "title" },
        h("h2", { id: "text-title" }, "Text"),
        model.data ? this.#rows(model.data.n) : null,
      ),
      h(
        "div",
        { class: "field" },
        h(
          "div",
          { class: "labels" },
          h("label", { for: "text-input" }, "Text on the table"),
          this.addPair,
        ),
        this.text,
      ),
      this.pairBox,
      this.gold,
      this.problem,
      this.answers,
      this.depths,
    );
    table.addEventListener("edit", () => this.read());
    table.addEventListener("text", () => this.#show());
  }

  /** @param {number} n */
  #rows(n) {
    this.number.max = String(n - 1);
    return h(
      "div",
      { class: "rows" },
      h("label", { for: "row-number" }, "row"),
      this.number,
      h("span", { class: "soft" }, `of ${n.toLocaleString("en")}`),
      tool("back", "Previous row", () => this.take(this.#row - 1)),
      tool("next", "Next row", () => this.take(this.#row + 1)),
    );
  }

  /** A row of the data on the table. @param {number} row */
  async take(row) {
    const n = this.model.data?.n ?? 0;
    const i = ((Math.trunc(row) % n) + n) % n;
    const mine = (this.#changes += 1);
    clearTimeout(this.#pause);
    try {
      const { rows } = await get(`rows?start=${i}&count=1`);
      if (mine !== this.#changes) return;
      this.#row = i;
      this.number.value = String(i);
      [this.#goldOf, this.#gold] = [
        rows[0].text,
        rows[0].label === null || this.model.data?.kind === "text" ? "" : String(rows[0].label),
      ];
      this.table.write(rows[0].text, rows[0].pair ?? "");
    } catch (error) {
      this.#refuse(error);
    }
  }

  #typed() {
    this.#changes += 1;
    clearTimeout(this.#pause);
    this.#grow();
    this.#pause = setTimeout(() => this.table.write(this.text.value, this.pair.value), PAUSE);
  }

  #grow() {
    for (const box of [this.text, this.pair]) {
      box.style.height = "auto";
      box.style.height = `${Math.min(box.scrollHeight + 2, 220)}px`;
    }
  }

  #show() {
    if (this.text.value !== this.table.text) this.text.value = this.table.text;
    if (this.pair.value !== this.table.pair) this.pair.value = this.table.pair;
    if (this.table.pair) this.#openPair();
    const isGold = this.#gold !== "" && this.#goldOf === this.table.text;
    replace(this.gold, ...(isGold ? ["Label in the data: ", h("b", {}, said(this.#gold))] : []));
    this.gold.hidden = !isGold;
    this.#grow();
    void this.read();
  }

  #openPair() {
    this.pairBox.hidden = false;
    this.addPair.hidden = true;
  }

  async read() {
    if (!this.table.text.trim()) {
      replace(
        this.answers,
        h(
          "p",
          { class: "note" },
          this.model.data ? "Type a text, or take a row of the data." : "Type a text.",
        ),
      );
      replace(this.depths);
      return;
    }
    this.answers.classList.add("waiting");
    try {
      const { text, pair, edit } = this.table;
      const body = { text, ...(pair ? { pair } : {}), edit, control: this.control.checked };
      /** @type {Reading | null} */
      const reading = await this.#latest.run((signal) => post("text", body, signal));
      if (!reading) return;
      this.problem.hidden = true;
      replace(
        this.answers,
        reading.tokens.length >= this.model.max_length &&
          h("p", { class: "note" }, `At most ${this.model.max_length} tokens of a text are read.`),
        ...answers(reading, {
          edited: edit !== "",
          // A relevance, several labels, spans: nothing that one answer is or isn't.
          gold: this.gold.hidden || this.model.job !== "classification" ? "" : this.#gold,
          mask: this.model.mask,
        }),
      );
      replace(this.depths, ...this.#grid(reading));
      dispatchEvent(new CustomEvent("read", { detail: reading }));
    } catch (error) {
      this.#refuse(error);
    }
    this.answers.classList.remove("waiting");
  }

  /** @param {any} error */
  #refuse(error) {
    this.problem.textContent = [error.message, error.hint].filter(Boolean).join("; ");
    this.problem.hidden = false;
  }

  /** @param {Reading} reading */
  #grid(reading) {
    const why = this.model.can.why?.decode;
    if (!reading.depths.length)
      return why ? [h("h3", {}, "What each depth says"), h("p", { class: "note" }, why)] : [];
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "depth"),
      h("th", { scope: "col", class: "n" }, "same %"),
      ...reading.tokens.map((token) => h("th", { scope: "col" }, said(token))),
    );
    const body = reading.depths.flatMap((depth) => [
      this.#line(String(depth.depth), depth.tokens, depth.right),
      ...(depth.control
        ? [
            this.#line(
              "random blocks",
              reading.tokens.map((token, i) => (depth.control?.[i] ? token : "other")),
              depth.control,
              "control",
            ),
          ]
        : []),
    ]);
    return [
      h(
        "div",
        { class: "title" },
        h("h3", {}, "What each depth says"),
        h("label", { class: "check" }, this.control, "compare with random blocks"),
      ),
      h(
        "p",
        { class: "note" },
        `Every state through ${READOUTS[reading.readout] ?? reading.readout}; what differs from the text is underlined.`,
      ),
      scroll(
        "What each depth says",
        h("table", { class: "sentences" }, h("thead", {}, head), h("tbody", {}, ...body)),
      ),
    ];
  }

  /** @param {string} label @param {string[]} tokens @param {boolean[]} right */
  #line(label, tokens, right, kind = "") {
    const share = right.filter(Boolean).length / Math.max(right.length, 1);
    return h(
      "tr",
      { class: kind },
      h("th", { scope: "row" }, label),
      h("td", { class: "n" }, percent(share, 0)),
      ...tokens.map((token, i) =>
        h(
          "td",
          {},
          right[i]
            ? said(token)
            : h(
                "mark",
                { title: `differs at ${label === "random blocks" ? label : `depth ${label}`}` },
                said(token),
              ),
        ),
      ),
    );
  }
}
