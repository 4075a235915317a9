// The stack: layers as slices. Drag or arrow keys move one, double-click duplicates, the cross strikes
// out, a click on a head disables it; each of them is a button too.

import { announce, arrowKeys, at, focusKey, h, icon, replace, tool } from "../elements.js";
import { counted } from "../numbers.js";
import { duplicated, moved, restored, shown, toggled, without } from "../slices.js";

/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../slices.js").Slice} Slice */
/** @typedef {import("../table.js").Table} Table */

export class StackPart {
  /** @param {Table} table @param {Model} model */
  constructor(table, model) {
    this.table = table;
    this.model = model;
    this.list = h("ol", { class: "slices", "aria-label": "Layers, first to last" });
    this.count = h("span", { class: "soft" });
    this.why = h("p", { class: "note" });
    arrowKeys(this.list, ".head");
    this.list.addEventListener("pointerleave", () =>
      dispatchEvent(new CustomEvent("look", { detail: null })),
    );
    const section = at("stack");
    section.hidden = false;
    section.append(
      h("div", { class: "title" }, h("h2", { id: "stack-title" }, "Stack"), this.count),
      h("p", { class: "ends", "aria-hidden": "true" }, "text in"),
      this.list,
      h("p", { class: "ends", "aria-hidden": "true" }, "answer out"),
      this.why,
      this.#keys(),
    );
    table.addEventListener("edit", () => this.draw());
  }

  /** What works on this model; layers that share their weights have more to them once they don't. */
  get can() {
    const { can } = this.model;
    const isUnshared = this.table.stack.other.includes("unshare()");
    return isUnshared ? { ...can, depth: true, single_heads: true } : can;
  }

  draw() {
    const { slices, stack } = this.table;
    const off = stack.disabled.length;
    this.count.textContent =
      counted(slices.length, "layer") + (off ? `, ${counted(off, "head")} disabled` : "");
    const why = this.can.why ?? {};
    const reasons = [
      this.can.depth === false && why.depth,
      this.can.disable === false && why.disable,
      this.#sharesWeights && why.single_heads,
    ].filter(Boolean);
    const isShared = this.can.depth === false || this.#sharesWeights;
    replace(this.why, reasons.join("; "), ...(isShared ? [". ", this.#unshare()] : []));
    this.why.hidden = reasons.length === 0;
    this.list.style.setProperty("--heads", String(this.model.heads));
    const rows = shown(slices, stack.base_layers ?? this.model.layers);
    replace(
      this.list,
      ...rows.map((row) =>
        "missing" in row ? this.#missing(row.missing) : this.#slice(slices, row.position),
      ),
    );
    if (!this.list.querySelector('.head[tabindex="0"]'))
      this.list.querySelector(".head")?.setAttribute("tabindex", "0");
  }

  /** @param {Slice[]} slices @param {number} i */
  #slice(slices, i) {
    const { layer, off } = slices[i];
    const name = layer === i ? `layer ${i}` : `layer ${i} (layer ${layer} of the base)`;
    const copy = slices.findIndex((slice) => slice.layer === layer) < i;
    const fixed = this.can.depth === false;
    const stays = fixed || this.#sharesWeights; // layers that are alike have no order
    const full = slices.length >= (this.model.most_layers ?? Infinity);
    const item = h(
      "li",
      {
        class: copy ? "slice copy" : "slice",
        "data-position": i,
        ondblclick: (e) => !e.target.closest("button") && !fixed && this.#duplicate(i),
      },
      h(
        "button",
        {
          type: "button",
          class: "handle",
          "data-key": `move ${i}`,
          disabled: stays,
          title: `Drag to move ${name}`,
          "aria-label": `Move ${name}: arrow up and down; D duplicates, Delete removes`,
          onkeydown: (e) => this.#key(e, i),
          onpointerdown: (e) => this.#drag(e, i),
        },
        icon("handle"),
      ),
      h(
        "span",
        { class: "number" },
        h("b", {}, i),
        layer === i ? null : h("small", {}, `${copy ? "copy of" : "was"} ${layer}`),
      ),
      h(
        "span",
        { class: "heads", role: "group", "aria-label": `Heads of ${name}` },
        ...this.#heads(i, off),
      ),
      h(
        "span",
        { class: "acts" },
        tool("up", `Move ${name} up`, () => this.#move(i, i - 1), {
          disabled: stays || i === 0,
          "data-key": `up ${i}`,
        }),
        tool("down", `Move ${name} down`, () => this.#move(i, i + 1), {
          disabled: stays || i === slices.length - 1,
          "data-key": `down ${i}`,
        }),
        tool("duplicate", `Duplicate ${name}`, () => this.#duplicate(i), {
          disabled: fixed || full,
          "data-key": `duplicate ${i}`,
        }),
        tool("remove", `Remove ${name}`, () => this.#remove(i), {
          disabled: fixed || slices.length === 1,
          "data-key": `remove ${i}`,
        }),
      ),
    );
    return item;
  }

  /** @param {number} i @param {ReadonlySet<number>} off */
  #heads(i, off) {
    return Array.from({ length: this.model.heads }, (_, j) => {
      const isOff = off.has(j);
      return h("button", {
        type: "button",
        class: "head",
        "data-row": i,
        "data-column": j,
        "data-key": `head ${i}.${j}`,
        tabindex: "-1",
        "aria-pressed": isOff ? "true" : "false",
        "aria-label": `Disable head ${i}.${j}`,
        title: isOff ? `Head ${i}.${j}, disabled` : `Head ${i}.${j}`,
        disabled: this.can.disable === false,
        onclick: () => this.toggle(i, j),
        onpointerenter: () => dispatchEvent(new CustomEvent("look", { detail: [i, j] })),
      });
    });
  }

  /** @param {number} layer */
  #missing(layer) {
    const label = `Put layer ${layer} back`;
    return h(
      "li",
      { class: "slice missing" },
      h("span", { class: "number" }, h("b", {}, h("s", {}, layer))),
      h("span", { class: "soft" }, "removed"),
      h(
        "span",
        { class: "acts" },
        tool("restore", label, () => this.table.operate((slices) => restored(slices, layer)), {
          "data-key": `restore ${layer}`,
        }),
      ),
    );
  }

  /** @param {number} i @param {number} j */
  toggle(i, j) {
    return this.table.operate((slices) => toggled(slices, i, j, this.#sharesWeights));
  }

  #unshare() {
    const edit = ["unshare()", this.table.edit].filter(Boolean).join(" | ");
    return h(
      "button",
      { type: "button", class: "link", "data-key": "unshare", onclick: () => this.table.put(edit) },
      "Put unshare() first",
    );
  }

  get #sharesWeights() {
    return this.can.single_heads === false;
  }

  /** @param {number} i */
  async #remove(i) {
    await this.table.operate((slices) => without(slices, i));
    focusKey(this.list, `remove ${Math.min(i, this.table.slices.length - 1)}`);
  }

  /** @param {number} i */
  #duplicate(i) {
    return this.table.operate((slices) => duplicated(slices, i));
  }

  /** @param {number} from @param {number} to @param {string} [key] of what gets the focus */
  async #move(from, to, key = to < from ? "up" : "down") {
    const n = this.table.slices.length;
    if (to < 0 || to >= n || to === from) return;
    await this.table.operate((slices) => moved(slices, from, to));
    focusKey(this.list, `${key} ${to}`);
    if (!this.table.problem) announce(`moved to place ${to}`);
  }

  /** @param {KeyboardEvent} event @param {number} i */
  #key(event, i) {
    const acts = {
      ArrowUp: () => this.#move(i, i - 1, "move"),
      ArrowDown: () => this.#move(i, i + 1, "move"),
      Delete: () => this.table.slices.length > 1 && this.#remove(i),
      d: () => this.#duplicate(i),
    };
    const key = event.key === "D" ? "d" : event.key;
    const act = acts[/** @type {keyof typeof acts} */ (key)];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    void act();
  }

  /** @param {PointerEvent} event @param {number} from */
  #drag(event, from) {
    const handle = /** @type {HTMLElement} */ (event.currentTarget);
    const item = /** @type {HTMLElement} */ (handle.closest(".slice"));
    const others = [...this.list.querySelectorAll(".slice[data-position]")].filter(
      (other) => other !== item,
    );
    const middles = others.map((other) => {
      const box = other.getBoundingClientRect();
      return box.top + box.height / 2;
    });
    let to = from;
    const follow = (/** @type {PointerEvent} */ e) => {
      const shift = e.clientY - event.clientY;
      item.style.transform = `translateY(${shift}px)`;
      if (Math.abs(shift) > 4) item.classList.add("dragged");
      to = item.classList.contains("dragged")
        ? middles.filter((middle) => middle < e.clientY).length
        : from;
      others.forEach((other, k) => {
        other.classList.toggle("below-drop", k === to && to !== from);
        other.classList.toggle("above-drop", to === others.length && k === to - 1 && to !== from);
      });
    };
    const end = (/** @type {Event} */ e) => {
      if (e instanceof KeyboardEvent && e.key !== "Escape") return;
      handle.removeEventListener("pointermove", follow);
      for (const name of ["pointerup", "pointercancel", "keydown"])
        handle.removeEventListener(name, end);
      item.style.transform = "";
      item.classList.remove("dragged");
      others.forEach((other) => other.classList.remove("below-drop", "above-drop"));
      if (e.type === "pointerup") void this.#move(from, to, "move");
    };
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    handle.addEventListener("pointermove", follow);
    for (const name of ["pointerup", "pointercancel", "keydown"])
      handle.addEventListener(name, end);
  }

  #keys() {
    const rows = [
      ["↑ ↓ on a handle", "move the layer"],
      ["D, Delete on a handle", "duplicate, remove"],
      ["arrow keys on a head", "go from head to head"],
      ["Space on a head", "disable, enable"],
      ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
    ];
    return h(
      "details",
      { class: "keys" },
      h("summary", {}, "Keyboard and mouse"),
      h(
        "p",
        { class: "soft" },
        "Drag a handle to reorder, double-click a slice to duplicate it, click a head to disable it.",
      ),
      h("dl", {}, ...rows.flatMap(([keys, act]) => [h("dt", {}, keys), h("dd", {}, act)])),
    );
  }
}
