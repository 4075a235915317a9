// The attention: every head of every layer as a small map, one enlarged with its tokens, before and
// after the edit, their difference, and a second model's.

import { attention, Latest } from "../api.js";
import { attentionColors, differenceColors, onThemeChange } from "../colors.js";
import { arrowKeys, at, h, lastPart, replace, said, scroll } from "../elements.js";
import { drawMap, mapOf } from "../maps.js";
import { enlarged, SIDE_BY_SIDE } from "./enlarged.js";
import { choices, looked } from "./looks.js";

/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../api.js").Reading} Reading */
/** @typedef {import("../api.js").Stack} Stack */
/** @typedef {import("../table.js").Table} Table */
/** @typedef {import("./looks.js").Mode} Mode */
/** @typedef {import("./looks.js").Shown} Shown */

export class AttentionPart {
  #latest = new Latest();
  #enlarging = new Latest();
  /** @type {import("./looks.js").Known} */
  #maps = {};
  /** The text whose maps are there, and the stack that they are of. @type {{text: string, stack: Stack}} */
  #of;
  /** @type {string[]} */
  #tokens = [];
  #disabled = new Set();
  /** @type {Mode} */
  mode = "after";
  /** Layer and head that are enlarged. @type {[number, number]} */
  chosen = [0, 0];

  /** @param {Table} table @param {Model} model @param {(i: number, j: number) => Promise<void>} toggle */
  constructor(table, model, toggle) {
    this.table = table;
    this.model = model;
    this.toggle = toggle;
    this.second = lastPart(model.second ?? "");
    this.#of = { text: "", stack: table.stack };
    this.modes = h("fieldset", { class: "modes" });
    this.grid = h("div", {
      class: "maps",
      role: "group",
      "aria-label": "Attention maps: a row per layer, a column per head",
    });
    this.large = h("div", { class: "large" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    arrowKeys(this.grid, ".map");
    at("attention").hidden = false;
    at("attention").append(
      h("div", { class: "title" }, h("h2", { id: "attention-title" }, "Attention"), this.modes),
      this.problem,
      scroll("Attention maps", this.grid),
      this.large,
    );
    table.addEventListener("edit", () => this.#follow());
    addEventListener("read", (event) =>
      this.load(/** @type {CustomEvent<Reading>} */ (event).detail),
    );
    addEventListener("look", (event) =>
      this.#point(/** @type {CustomEvent<[number, number]>} */ (event).detail),
    );
    onThemeChange(() => this.draw());
  }

  /** @param {Reading} reading */
  async load(reading) {
    const { text, pair, edit, stack } = this.table;
    const textKey = JSON.stringify([text, pair]);
    const body = { text, ...(pair ? { pair } : {}), edit };
    at("attention").ariaBusy = "true";
    try {
      const known = this.#of.text === textKey ? this.#maps : {};
      const got = await this.#latest.run(async (signal) => {
        const before = known.before ?? (await attention({ ...body, which: "before" }, signal));
        const after = edit === "" ? before : await attention({ ...body, which: "after" }, signal);
        const second = this.model.second
          ? (known.second ?? (await attention({ ...body, which: "second" }, signal)))
          : undefined;
        return { before, after, second };
      });
      if (!got) return;
      this.problem.hidden = true;
      this.#maps = got;
      this.#of = { text: textKey, stack };
      this.#tokens = reading.tokens;
      this.draw();
    } catch (error) {
      this.#refuse(error);
    }
    at("attention").ariaBusy = "false";
  }

  get #choices() {
    return choices(this.#maps, this.#of.stack, this.model.layers);
  }

  draw() {
    if (!this.#maps.before) return;
    const offered = this.#choices;
    if (!offered.includes(this.mode)) this.mode = "after";
    this.#drawModes(offered);
    const shown = looked(this.mode, this.#maps, this.#of.stack.order, this.second);
    if (!shown) return;
    this.chosen = [
      Math.min(this.chosen[0], shown.maps.layers - 1),
      Math.min(this.chosen[1], shown.maps.heads - 1),
    ];
    this.#drawGrid(shown);
    void this.#drawLarge();
  }

  /** @param {Mode[]} offered */
  #drawModes(offered) {
    const names = {
      before: "before",
      after: this.#of.stack.edit ? "after" : "as it is",
      change: "difference",
      second: this.second,
      versus: "difference of models",
    };
    this.modes.hidden = offered.length < 2;
    replace(
      this.modes,
      h("legend", { class: "unseen" }, "Which attention"),
      ...offered.map((mode) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "mode",
            value: mode,
            checked: mode === this.mode,
            "data-key": `mode ${mode}`,
            onchange: () => {
              this.mode = mode;
              this.draw();
            },
          }),
          h("span", {}, said(names[mode])),
        ),
      ),
    );
  }

  /** @param {Shown} shown */
  #drawGrid({ maps, isDifference, origin }) {
    const colors = isDifference ? differenceColors() : attentionColors();
    const off = new Set(
      this.mode === "after" || this.mode === "change"
        ? this.#of.stack.disabled.map(([i, j]) => `${i}.${j}`)
        : [],
    );
    this.grid.style.setProperty("--heads", String(maps.heads));
    this.grid.style.setProperty("--layers", String(maps.layers));
    const cells = [
      h("span", { class: "corner soft" }, "layer"),
      ...Array.from({ length: maps.heads }, (_, j) => h("span", { class: "column soft" }, j)),
    ];
    for (let i = 0; i < maps.layers; i += 1) {
      cells.push(
        h(
          "span",
          {
            class: "row soft",
            title: origin[i] === i ? `layer ${i}` : `layer ${i}, layer ${origin[i]} of the base`,
          },
          i,
        ),
      );
      for (let j = 0; j < maps.heads; j += 1) {
        const canvas = h("canvas", { "aria-hidden": "true" });
        drawMap(canvas, mapOf(maps, i, j), colors, isDifference);
        const isChosen = this.chosen[0] === i && this.chosen[1] === j;
        const isOff = off.has(`${i}.${j}`);
        cells.push(
          h(
            "button",
            {
              type: "button",
              class: isOff ? "map off" : "map",
              "data-row": i,
              "data-column": j,
              "data-key": `map ${i}.${j}`,
              tabindex: isChosen ? "0" : "-1",
              "aria-pressed": isChosen ? "true" : "false",
              "aria-label": `Enlarge head ${i}.${j}${isOff ? ", disabled" : ""}`,
              title: `Head ${i}.${j}${isOff ? ", disabled" : ""}`,
              onclick: () => this.enlarge(i, j),
            },
            canvas,
          ),
        );
      }
    }
    replace(this.grid, ...cells);
  }

  /** A head that was disabled just now is the one to look at. */
  #follow() {
    const { disabled } = this.table.stack;
    const newest = disabled.find(([i, j]) => !this.#disabled.has(`${i}.${j}`));
    this.#disabled = new Set(disabled.map(([i, j]) => `${i}.${j}`));
    if (newest) this.chosen = newest;
  }

  /** The map of the head that the mouse is over in the stack. @param {[number, number] | null} head */
  #point(head) {
    this.grid.querySelector(".looked")?.classList.remove("looked");
    if (head && this.mode !== "before")
      this.grid.querySelector(`[data-key="map ${head[0]}.${head[1]}"]`)?.classList.add("looked");
  }

  /** @param {number} i @param {number} j */
  enlarge(i, j) {
    this.chosen = [i, j];
    for (const button of this.grid.querySelectorAll(".map")) {
      const isChosen = button.getAttribute("data-key") === `map ${i}.${j}`;
      button.setAttribute("aria-pressed", String(isChosen));
      if (button instanceof HTMLElement) button.tabIndex = isChosen ? 0 : -1;
    }
    void this.#drawLarge();
  }

  async #drawLarge() {
    const [i, j] = this.chosen;
    const inBase = this.mode === "before" || this.mode === "second" || this.mode === "versus";
    const { edit, order, disabled } = this.#of.stack;
    const layer = inBase ? i : order[i];
    const position = inBase ? order.indexOf(i) : i;
    this.large.classList.add("waiting"); // the maps of a long text are asked for
    try {
      const maps = await this.#enlarging.run((signal) => this.#single(layer, position, j, signal));
      if (!maps) return;
      const isOff = disabled.some(([a, b]) => a === position && b === j);
      const canDisable = this.model.can.disable !== false && position >= 0;
      const now =
        inBase && position !== i
          ? h("span", { class: "soft" }, position < 0 ? " (removed)" : ` (now ${position}.${j})`)
          : null;
      const modes = this.#tokens.length > SIDE_BY_SIDE ? [this.mode] : this.#choices;
      const figures = modes
        .flatMap((mode) => looked(mode, maps, [0], this.second) ?? [])
        .map((shown) => (edit || shown.title !== "after" ? shown : { ...shown, title: "as it is" }))
        .map((shown) => enlarged(shown, this.#tokens, `${i}.${j}`));
      replace(
        this.large,
        h(
          "div",
          { class: "title" },
          h("h3", {}, `Head ${i}.${j}`, now),
          canDisable
            ? h(
                "button",
                { type: "button", "data-key": "toggle", onclick: () => this.toggle(position, j) },
                isOff ? `Enable head ${position}.${j}` : `Disable head ${position}.${j}`,
              )
            : null,
        ),
        h("div", { class: figures.length > 2 ? "figures many" : "figures" }, ...figures),
      );
    } catch (error) {
      this.#refuse(error);
    }
    this.large.classList.remove("waiting");
  }

  /**
   * The maps of one head in full: those of a long text are reduced in the grid.
   * @param {number} layer of the base @param {number} position in the edited stack, or -1
   * @param {number} head @param {AbortSignal} signal
   */
  async #single(layer, position, head, signal) {
    const { text, pair } = this.table;
    const { edit } = this.#of.stack;
    const one = async (
      /** @type {"before" | "after" | "second"} */ which,
      /** @type {number} */ place,
    ) => {
      const maps = this.#maps[which];
      if (!maps || place < 0 || place >= maps.layers || head >= maps.heads) return undefined;
      if (maps.of === maps.tokens)
        return { ...maps, layers: 1, heads: 1, values: mapOf(maps, place, head).values };
      return attention(
        { text, ...(pair ? { pair } : {}), edit, which, layer: place, head },
        signal,
      );
    };
    return {
      before: await one("before", layer),
      after: await one("after", position),
      second: await one("second", layer),
    };
  }

  /** @param {unknown} error */
  #refuse(error) {
    this.problem.textContent = error instanceof Error ? error.message : String(error);
    this.problem.hidden = false;
  }
}
