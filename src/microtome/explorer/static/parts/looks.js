// The ways to look at attention: before the edit, after it, a second model, and their differences.

import { difference } from "../maps.js";

/** @typedef {import("../api.js").Maps} Maps */
/** @typedef {import("../api.js").Stack} Stack */
/** @typedef {"before" | "after" | "change" | "second" | "versus"} Mode */
/** @typedef {Partial<Record<"before" | "after" | "second", Maps>>} Known */
/** @typedef {{title: string, maps: Maps, isDifference: boolean, origin: number[]}} Shown origin: the base's layer at each position */

/**
 * What can be looked at: a difference needs layers that can be traced to those of the base.
 * @param {Known} maps @param {Stack} stack @param {number} layers of the base @returns {Mode[]}
 */
export function choices({ before, second }, stack, layers) {
  const { edit, order, base_layers: numbered = layers } = stack;
  const sizes = (/** @type {Maps | undefined} */ maps) =>
    maps && [maps.layers, maps.heads, maps.tokens].join();
  const offered = {
    before: edit !== "",
    after: true,
    change: edit !== "" && numbered === layers && order.every((layer) => layer < layers),
    second: second !== undefined,
    versus: second !== undefined && sizes(before) === sizes(second),
  };
  return /** @type {Mode[]} */ (Object.keys(offered)).filter((mode) => offered[mode]);
}

/**
 * What a mode shows; null where a map is missing, as that of a removed layer.
 * @param {Mode} mode @param {Known} maps @param {number[]} order @param {string} name of the second model
 * @returns {Shown | null}
 */
export function looked(mode, { before, after, second }, order, name) {
  const same = Array.from({ length: before?.layers ?? second?.layers ?? 0 }, (_, i) => i);
  const plain = (
    /** @type {string} */ title,
    /** @type {Maps | undefined} */ maps,
    origin = same,
  ) => (maps ? { title, maps, isDifference: false, origin } : null);
  const change = (
    /** @type {string} */ title,
    /** @type {Maps | undefined} */ maps,
    origin = same,
  ) =>
    before && maps
      ? { title, maps: difference(before, maps, origin), isDifference: true, origin }
      : null;
  const shown = {
    before: () => plain("before", before),
    after: () => plain("after", after, order),
    change: () => change("after − before", after, order),
    second: () => plain(name, second),
    versus: () => change(`${name} − before`, second),
  };
  return shown[mode]();
}
