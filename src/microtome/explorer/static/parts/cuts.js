// The cuts tried so far and those of a trim: score against speed, each a click away from the table.

import { get, Latest } from "../api.js";
import { at, h, replace, s, said, scroll } from "../elements.js";
import {
  between,
  decimals,
  isNumber,
  milliseconds,
  percent,
  points,
  ticks,
  times,
} from "../numbers.js";

/** @typedef {import("../api.js").Cut} Cut */
/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../table.js").Table} Table */

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 260, 44, 16, 30, 40];

export class CutsPart {
  #latest = new Latest();
  /** @type {Cut[]} */
  #tried = [];
  /** @type {Cut[]} */
  #frontier = [];

  /** @param {Table} table @param {Model} model */
  constructor(table, model) {
    this.table = table;
    this.model = model;
    this.figure = h("div", {});
    this.list = h("div", {});
    const section = at("cuts");
    section.hidden = false;
    section.append(
      h("div", { class: "title" }, h("h2", { id: "cuts-title" }, "Cuts")),
      this.figure,
      this.list,
    );
    addEventListener("scored", (event) =>
      this.#load(
        /** @type {CustomEvent<{score: import("../api.js").Score}>} */ (event).detail.score,
      ),
    );
    table.addEventListener("edit", () => this.draw());
  }

  async open() {
    this.#frontier = (await get("frontier").catch(() => ({ cuts: [] }))).cuts;
    this.draw();
  }

  /** @param {import("../api.js").Score} score which knows the base too, even if it wasn't tried */
  async #load({ base, latency_ms: latency }) {
    at("cuts").ariaBusy = "true";
    const got = await this.#latest
      .run((signal) => get("tried", signal))
      .catch(() => ({ cuts: this.#tried }));
    if (!got) return; // a newer list is on its way
    /** @type {Cut[]} */
    const tried = got.cuts;
    const whole = {
      edit: "",
      score: base.value,
      change: 0,
      change_low: null,
      change_high: null,
      latency_ms: latency.base,
      speed: 1,
    };
    this.#tried = [whole, ...tried.filter((cut) => cut.edit !== "")];
    this.draw();
    at("cuts").ariaBusy = "false";
  }

  draw() {
    const drawn = [
      ...this.#frontier.map((cut) => ({ cut, isTrim: true })),
      ...this.#tried.map((cut) => ({ cut, isTrim: false })),
    ].filter(({ cut }) => isNumber(cut.speed) && isNumber(cut.score));
    replace(this.figure, drawn.length > 1 ? this.#plot(drawn) : null);
    replace(
      this.list,
      this.#frontier.length ? this.#table("Cuts of the trim", this.#frontier) : null,
      this.#frontier.length
        ? h(
            "p",
            { class: "note" },
            "Diamonds: scored by the trim, on rows that nothing was picked on.",
            this.#frontier.some((cut) => cut.healed) &&
              " Healed cuts were trained after the edit; a click puts the edit alone on the table.",
          )
        : null,
      this.#tried.length
        ? this.#table(this.#frontier.length ? "This session" : "", [...this.#tried].reverse())
        : this.model.data &&
            h("p", { class: "note" }, "Every edit that is measured is listed here."),
    );
  }

  /** @param {string} edit */
  #name(edit) {
    return edit === "" ? "as it is" : edit;
  }

  /** @param {{cut: Cut, isTrim: boolean}[]} drawn */
  #plot(drawn) {
    const speeds = drawn.map(({ cut }) => Number(cut.speed));
    const xs = ticks(Math.min(...speeds), Math.max(...speeds), 5);
    const ys = ticks(
      100 * Math.min(...drawn.map(({ cut }) => cut.score)),
      100 * Math.max(...drawn.map(({ cut }) => cut.score)),
      4,
    );
    const scale =
      (/** @type {number[]} */ all, /** @type {number} */ from, /** @type {number} */ to) =>
      (/** @type {number} */ value) =>
        from + ((value - all[0]) / (all[all.length - 1] - all[0])) * (to - from);
    const [x, y] = [scale(xs, LEFT + 6, WIDTH - RIGHT), scale(ys, HEIGHT - BOTTOM, TOP)];
    // The cuts of a trim are scored on rows of their own: no line joins them with those tried here.
    const joined = this.#frontier.length ? drawn.filter(({ isTrim }) => isTrim) : drawn;
    const frontier = best(joined.map(({ cut }) => cut));
    return s(
      "svg",
      {
        class: "frontier",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "group",
        "aria-label": "Score against speed; each point is a cut",
      },
      s("text", { class: "name", x: 2, y: 14 }, "score (%)"),
      ...ys.map((tick) =>
        s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT + 8, y1: y(tick), y2: y(tick) }),
      ),
      ...ys.map((tick) =>
        s(
          "text",
          { class: "label", x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" },
          tick.toFixed(decimals(ys)),
        ),
      ),
      s("line", {
        class: "axis",
        x1: LEFT,
        x2: WIDTH - RIGHT + 8,
        y1: HEIGHT - BOTTOM,
        y2: HEIGHT - BOTTOM,
      }),
      ...xs.map((tick) =>
        s(
          "text",
          { class: "label", x: x(tick), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" },
          tick.toFixed(decimals(xs)),
        ),
      ),
      s(
        "text",
        { class: "name", x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" },
        "times as fast as the base",
      ),
      s("polyline", {
        class: "best",
        points: frontier.map((cut) => `${x(Number(cut.speed))},${y(100 * cut.score)}`).join(" "),
      }),
      ...drawn.map(({ cut, isTrim }) =>
        this.#point(cut, isTrim, x(Number(cut.speed)), y(100 * cut.score)),
      ),
    );
  }

  /** @param {Cut} cut @param {boolean} isTrim @param {number} x @param {number} y */
  #point(cut, isTrim, x, y) {
    const label = `${this.#name(cut.edit)}: ${percent(cut.score)} %, ${times(cut.speed)}`;
    const take = () => this.table.put(cut.edit);
    const isHere = cut.edit === this.table.edit;
    const mark = isTrim
      ? s("rect", { x: x - 5, y: y - 5, width: 10, height: 10, transform: `rotate(45 ${x} ${y})` })
      : s("circle", { cx: x, cy: y, r: isHere ? 7 : 5 });
    return s(
      "g",
      {
        class: `point${isTrim ? " trim" : ""}${isHere ? " here" : ""}`,
        role: "button",
        tabindex: "0",
        "aria-label": `Put on the table: ${label}`,
        "data-key": `point ${isTrim} ${cut.edit}`,
        onclick: take,
        onkeydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), take()),
      },
      s("title", {}, label),
      s("circle", { class: "target", cx: x, cy: y, r: 12 }),
      mark,
    );
  }

  /** @param {string} title @param {Cut[]} cuts */
  #table(title, cuts) {
    const heads = ["edit", "score %", "change", "speed"];
    const rows = cuts.map((cut) =>
      h(
        "tr",
        { class: cut.edit === this.table.edit ? "here" : "" },
        h(
          "td",
          {},
          h(
            "button",
            {
              type: "button",
              class: "link code",
              "data-key": `take ${title} ${cut.edit}`,
              title: "Put on the table",
              "aria-current": cut.edit === this.table.edit ? "true" : null,
              onclick: () => this.table.put(cut.edit),
            },
            said(this.#name(cut.edit)),
          ),
          cut.healed ? h("small", { class: "soft" }, " healed") : null,
        ),
        h("td", { class: "n" }, percent(cut.score)),
        h(
          "td",
          { class: "n", title: between(cut.change_low, cut.change_high) },
          cut.edit === "" ? "" : points(cut.change),
        ),
        h("td", { class: "n", title: `${milliseconds(cut.latency_ms)} ms` }, times(cut.speed)),
      ),
    );
    return h(
      "div",
      {},
      title ? h("h3", {}, title) : null,
      scroll(
        title || "Cuts tried",
        h(
          "table",
          { class: "tried" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...heads.map((name, i) => h("th", { scope: "col", class: i ? "n" : "" }, name)),
            ),
          ),
          h("tbody", {}, ...rows),
        ),
      ),
    );
  }
}

/** The cuts that no other beats in both score and speed, fastest first. @param {Cut[]} cuts */
function best(cuts) {
  const sorted = [...cuts].sort((a, b) => Number(b.speed) - Number(a.speed) || b.score - a.score);
  /** @type {Cut[]} */
  const kept = [];
  for (const cut of sorted)
    if (!kept.length || cut.score > kept[kept.length - 1].score) kept.push(cut);
  return kept;
}
