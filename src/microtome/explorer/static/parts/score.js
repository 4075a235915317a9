// The score on a sample of the data, after every edit: base, now, the change with its interval, latency.

import { get, Latest, post } from "../api.js";
import { announce, at, h, replace, s, said } from "../elements.js";
import {
  between,
  counted,
  decimals,
  milliseconds,
  percent,
  points,
  ticks,
  times,
} from "../numbers.js";

/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../api.js").Score} Score */
/** @typedef {import("../table.js").Table} Table */

const LOOK = 400; // ms between two looks at how far a long measurement is

export class ScorePart {
  #latest = new Latest();
  /** Goes up when a measurement starts and when it ends. */
  #measured = 0;

  /** @param {Table} table @param {Model} model */
  constructor(table, { data, can }) {
    this.table = table;
    const waiting = data
      ? "Measuring …"
      : `${can.why?.score ?? "no rows"}: start with --task or --data.`;
    this.body = h("div", { class: "scored" }, h("p", { class: "note" }, waiting));
    this.busy = h("div", {
      class: "busy",
      role: "progressbar",
      "aria-label": "Measuring",
      hidden: true,
    });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    const section = at("score");
    section.hidden = false;
    section.append(
      h(
        "div",
        { class: "title" },
        h("h2", { id: "score-title" }, "Score"),
        data && h("span", { class: "soft" }, words(data.primary), ` on ${counted(data.n, "row")}`),
      ),
      this.busy,
      this.problem,
      this.body,
      ...(data?.notes ?? []).map((note) => h("p", { class: "note" }, said(note))),
    );
    if (data) table.addEventListener("edit", () => this.measure());
  }

  async measure() {
    const { edit } = this.table;
    const mine = (this.#measured += 1);
    this.#wait(mine);
    try {
      /** @type {Score | null} */
      const score = await this.#latest.run((signal) => post("score", { edit }, signal));
      if (!score || mine !== this.#measured) return; // a newer edit is being measured
      this.problem.hidden = true;
      this.#show(score, edit);
      dispatchEvent(new CustomEvent("scored", { detail: { edit, score } }));
    } catch (error) {
      const refused = /** @type {Error & {hint?: string}} */ (error);
      this.problem.textContent = [refused.message, refused.hint].filter(Boolean).join("; ");
      this.problem.hidden = false;
    }
    this.#measured += 1;
    this.busy.hidden = true;
    this.#dim(false);
  }

  /** What is shown is of another edit. @param {boolean} isOld */
  #dim(isOld) {
    for (const one of [this.body, at("brief")]) one.classList.toggle("waiting", isOld);
  }

  /** Shows that something is measured, and how far it is. @param {number} mine */
  #wait(mine) {
    this.busy.hidden = false;
    this.busy.style.removeProperty("--done");
    this.#dim(true);
    const look = async () => {
      if (mine !== this.#measured) return;
      const { done, total } = await get("progress").catch(() => ({ done: 0, total: 0 }));
      if (mine !== this.#measured) return;
      if (total > 0) this.busy.style.setProperty("--done", `${(100 * done) / total}%`);
      this.busy.setAttribute(
        "aria-valuenow",
        total > 0 ? String(Math.round((100 * done) / total)) : "0",
      );
      setTimeout(look, LOOK);
    };
    setTimeout(look, LOOK);
  }

  /** @param {Score} score @param {string} edit */
  #show(score, edit) {
    const { base, now, latency_ms: latency } = score;
    const big = h(
      "p",
      { class: "big" },
      h("b", { id: "score-now" }, percent(now.value)),
      h("span", { class: "unit" }, " %"),
    );
    const range = `${percent(now.low)} to ${percent(now.high)}`;
    const change = edit && h("b", {}, points(score.change));
    replace(at("brief"), `${percent(now.value)} % `, change);
    if (edit === "") {
      replace(
        this.body,
        big,
        h("p", { class: "note" }, `95 % interval ${range}`),
        facts([["latency", `${milliseconds(latency.now)} ms`]]),
      );
      announce(`${words(score.metric)} ${percent(now.value)} percent`);
      return;
    }
    replace(
      this.body,
      big,
      h(
        "p",
        { class: "change" },
        h("b", { id: "score-change" }, points(score.change)),
        " points ",
        h("span", { class: "soft" }, `(${between(score.change_low, score.change_high)})`),
      ),
      interval(score),
      facts([
        ["before", `${percent(base.value)} %`],
        ["interval", `${range} %`],
        ["latency", `${milliseconds(latency.base)} → ${milliseconds(latency.now)} ms`],
        ["speed", times(latency.base / latency.now)],
      ]),
    );
    announce(
      `${edit}: ${words(score.metric)} ${percent(now.value)} percent, ${points(score.change)} points, ${between(score.change_low, score.change_high)}`,
    );
  }
}

/** @param {string} metric */
export const words = (metric) => metric.replaceAll("_", " ");

/** @param {[string, string][]} rows */
function facts(rows) {
  return h(
    "dl",
    { class: "facts" },
    ...rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** The change and its interval on an axis that has 0. @param {Score} score */
function interval({ change, change_low: low, change_high: high }) {
  const [left, right, width] = [14, 286, 300];
  const axis = ticks(100 * Math.min(low, 0), 100 * Math.max(high, 0), 4);
  const x = (/** @type {number} */ value) =>
    left + ((value - axis[0]) / (axis[axis.length - 1] - axis[0])) * (right - left);
  const digits = decimals(axis);
  return s(
    "svg",
    {
      class: "interval",
      viewBox: `0 0 ${width} 44`,
      role: "img",
      "aria-label": `change ${points(change)} points, ${between(low, high)}`,
    },
    ...axis.map((tick) =>
      s("line", { class: tick === 0 ? "axis" : "grid", x1: x(tick), x2: x(tick), y1: 4, y2: 24 }),
    ),
    ...axis.map((tick) =>
      s(
        "text",
        { class: "label", x: x(tick), y: 39, "text-anchor": "middle" },
        tick.toFixed(digits).replace("-", "−"),
      ),
    ),
    s("line", { class: "line0", x1: x(100 * low), x2: x(100 * high), y1: 14, y2: 14 }),
    s("circle", { class: "dot0", cx: x(100 * change), cy: 14, r: 5 }),
  );
}
