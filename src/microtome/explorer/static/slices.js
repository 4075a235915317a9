// A stack of layers as a value: each slice is a layer of the base and its disabled heads. Operations
// return a new stack; the server turns a stack into the text of an edit and back.

/** @typedef {{layer: number, off: ReadonlySet<number>}} Slice */
/** @typedef {{order: number[], disabled: [number, number][]}} Order */

/** @param {Order} stack @returns {Slice[]} */
export function slicesOf({ order, disabled }) {
  const slices = order.map((layer) => ({ layer, off: /** @type {Set<number>} */ (new Set()) }));
  for (const [i, j] of disabled) slices[i]?.off.add(j);
  return slices;
}

/** @param {Slice[]} slices @returns {Order} */
export function orderOf(slices) {
  return {
    order: slices.map((slice) => slice.layer),
    disabled: slices.flatMap((slice, i) =>
      [...slice.off].sort((a, b) => a - b).map((j) => /** @type {[number, number]} */ ([i, j])),
    ),
  };
}

/** @param {Slice[]} slices @param {number} i */
export const without = (slices, i) => slices.filter((_, k) => k !== i);

/** A copy right after the original, its heads as they are. @param {Slice[]} slices @param {number} i */
export const duplicated = (slices, i) => [
  ...slices.slice(0, i + 1),
  slices[i],
  ...slices.slice(i + 1),
];

/** @param {Slice[]} slices @param {number} from @param {number} to */
export function moved(slices, from, to) {
  const rest = without(slices, from);
  return [...rest.slice(0, to), slices[from], ...rest.slice(to)];
}

/**
 * A head disabled, or enabled again; of every layer where they share their weights.
 * @param {Slice[]} slices @param {number} i @param {number} j @param {boolean} everywhere
 */
export function toggled(slices, i, j, everywhere) {
  const isOff = slices[i].off.has(j);
  return slices.map((slice, k) => {
    if (k !== i && !everywhere) return slice;
    const off = new Set(slice.off);
    if (isOff) off.delete(j);
    else off.add(j);
    return { ...slice, off };
  });
}

/**
 * Where a removed layer would be: before the first slice that comes from above it.
 * @param {Slice[]} slices @param {number} layer
 */
export function placeOf(slices, layer) {
  const i = slices.findIndex((slice) => slice.layer > layer);
  return i < 0 ? slices.length : i;
}

/** @param {Slice[]} slices @param {number} layer */
export function restored(slices, layer) {
  const i = placeOf(slices, layer);
  return [...slices.slice(0, i), { layer, off: new Set() }, ...slices.slice(i)];
}

/**
 * What is to be shown, in order: slices, and the base's layers that are missing, in their places.
 * @param {Slice[]} slices @param {number} layers of the base
 * @returns {({position: number} | {missing: number})[]}
 */
export function shown(slices, layers) {
  const present = new Set(slices.map((slice) => slice.layer));
  /** @type {number[][]} */
  const missing = Array.from({ length: slices.length + 1 }, () => []);
  for (let layer = 0; layer < layers; layer += 1) {
    if (!present.has(layer)) missing[placeOf(slices, layer)].push(layer);
  }
  return missing.flatMap((gone, position) => [
    ...gone.map((layer) => ({ missing: layer })),
    ...(position < slices.length ? [{ position }] : []),
  ]);
}
