// A run: its experiments, their answers and figures; a cell of a head or an edit in a table is a click
// away from being on the table.

import { get } from "../api.js";
import { at, h, replace, said } from "../elements.js";
import { view } from "./views.js";

/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../table.js").Table} Table */
/** @typedef {{name: string, question: string, finding: string, status?: string, model?: string, task?: string, views: any[]}} Experiment */

export class RunPart {
  /** @type {Experiment[]} */
  #experiments = [];
  #chosen = 0;

  /** @param {Table} table @param {Model} model */
  constructor(table, model) {
    this.table = table;
    this.model = model;
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Experiments" });
    this.panel = h("div", { id: "run-panel", role: "tabpanel", tabindex: "0" });
    const section = at("run");
    section.hidden = false;
    section.append(
      h("div", { class: "title" }, h("h2", { id: "run-title" }, "Run")),
      this.tabs,
      this.panel,
    );
  }

  async open() {
    try {
      this.#experiments = (await get("run")).experiments;
      this.draw();
    } catch (error) {
      replace(
        this.panel,
        h(
          "p",
          { class: "problem", role: "alert" },
          error instanceof Error ? error.message : String(error),
        ),
      );
    }
  }

  draw() {
    replace(
      this.tabs,
      ...this.#experiments.map((experiment, i) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "data-key": `tab ${i}`,
            "aria-selected": String(i === this.#chosen),
            "aria-controls": "run-panel",
            tabindex: i === this.#chosen ? "0" : "-1",
            onclick: () => this.#choose(i),
            onkeydown: (e) => this.#key(e, i),
          },
          said(
            [experiment.name, this.#severalModels ? experiment.model : ""]
              .filter(Boolean)
              .join(" · "),
          ),
        ),
      ),
    );
    const experiment = this.#experiments[this.#chosen];
    if (!experiment)
      return replace(this.panel, h("p", { class: "note" }, "This run has no results yet."));
    replace(
      this.panel,
      h("h3", {}, said(experiment.question)),
      experiment.finding
        ? h("p", { class: "finding" }, said(experiment.finding))
        : h("p", { class: "note" }, experiment.status ?? ""),
      ...experiment.views.map((one) => view(one, this.#links)),
    );
  }

  get #severalModels() {
    return new Set(this.#experiments.map((experiment) => experiment.model)).size > 1;
  }

  /** What a click does; nothing where the run's model isn't there. */
  get #links() {
    if (this.model.model === null) return {};
    return {
      edit: (/** @type {string} */ text) => this.table.put(text),
      head: (/** @type {number} */ i, /** @type {number} */ j) =>
        i < this.model.layers && j < this.model.heads
          ? () => this.table.put(`disable(${i}.${j})`)
          : null,
    };
  }

  /** @param {number} i */
  #choose(i) {
    this.#chosen = i;
    this.draw();
  }

  /** @param {KeyboardEvent} event @param {number} i */
  #key(event, i) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const n = this.#experiments.length;
    this.#choose((i + step + n) % n);
    /** @type {HTMLElement} */ (this.tabs.children[this.#chosen]).focus();
  }
}
