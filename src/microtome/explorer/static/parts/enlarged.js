// One attention map, enlarged: tokens on both axes.

import { attentionColors, differenceColors } from "../colors.js";
import { h, replace, said, scroll } from "../elements.js";
import { drawMap, mapOf, mostAttended, shareOf } from "../maps.js";
import { percent, points } from "../numbers.js";

/** @typedef {import("./looks.js").Shown} Shown */

/** Tokens up to which enlarged maps fit next to each other. */
export const SIDE_BY_SIDE = 32;

/**
 * The first map of those shown, with a readout under the mouse and its links as text.
 * @param {Shown} shown @param {string[]} words of the text @param {string} head
 */
export function enlarged({ title, maps, isDifference }, words, head) {
  const tokens =
    maps.tokens === words.length ? words : Array.from({ length: maps.tokens }, (_, i) => String(i));
  const map = mapOf(maps, 0, 0);
  const canvas = h("canvas", {
    role: "img",
    "aria-label": `Attention, ${title}, head ${head}; the same as text below`,
  });
  drawMap(
    canvas,
    map,
    isDifference ? differenceColors() : attentionColors(),
    isDifference,
    map.tokens,
  );
  const readout = h(
    "p",
    { class: "note readout" },
    isDifference
      ? "change of attention, row to column: orange more, blue less"
      : "attention, row to column",
  );
  const value = (/** @type {number} */ byte) =>
    isDifference ? `${points(shareOf(byte, true))} points` : `${percent(shareOf(byte, false))} %`;
  const resting = readout.textContent;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const from = Math.min(
      map.tokens - 1,
      Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * map.tokens)),
    );
    const to = Math.min(
      map.tokens - 1,
      Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * map.tokens)),
    );
    replace(
      readout,
      said(tokens[from]),
      " → ",
      said(tokens[to]),
      ` ${value(map.values[from * map.tokens + to])}`,
    );
  });
  canvas.addEventListener("pointerleave", () => replace(readout, resting));
  const plot = h(
    "div",
    { class: "plot" },
    h(
      "div",
      { class: "to", "aria-hidden": "true" },
      ...tokens.map((token) => h("span", {}, said(token))),
    ),
    h(
      "div",
      { class: "from", "aria-hidden": "true" },
      ...tokens.map((token) => h("span", {}, said(token))),
    ),
    canvas,
  );
  plot.style.setProperty("--tokens", String(map.tokens));
  const list = mostAttended(map).map(([to, byte], from) =>
    h(
      "li",
      {},
      said(tokens[from]),
      " → ",
      said(tokens[to]),
      h("span", { class: "soft" }, ` ${value(byte)}`),
    ),
  );
  return h(
    "figure",
    {},
    h("figcaption", {}, said(title)),
    scroll(`Attention ${title}`, plot),
    readout,
    h(
      "details",
      {},
      h("summary", {}, isDifference ? "Largest gains as text" : "Strongest links as text"),
      h("ol", { class: "links" }, ...list),
    ),
  );
}
