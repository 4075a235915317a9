// Attention maps as arrays of bytes: those of one head, their difference, and their drawing.

/** @typedef {import("./api.js").Maps} Maps */
/** @typedef {{tokens: number, values: Uint8Array}} Map1 one head's map, row by row: from, then to */

const SMALL = 96; // pixels of a small map at most

/** @param {Maps} maps @param {number} layer @param {number} head @returns {Map1} */
export function mapOf(maps, layer, head) {
  const size = maps.tokens * maps.tokens;
  const start = (layer * maps.heads + head) * size;
  return { tokens: maps.tokens, values: maps.values.subarray(start, start + size) };
}

/**
 * Differences around 128: a value's change of 1 is 127.
 * @param {Maps} before @param {Maps} after
 * @param {number[]} origin the layer of `before` that each layer of `after` comes from
 * @returns {Maps}
 */
export function difference(before, after, origin) {
  const values = new Uint8Array(after.values.length);
  const size = after.heads * after.tokens * after.tokens;
  for (let layer = 0; layer < after.layers; layer += 1) {
    const from = origin[layer] * size;
    const to = layer * size;
    for (let k = 0; k < size; k += 1)
      values[to + k] = 128 + Math.round((after.values[to + k] - before.values[from + k]) / 2.008);
  }
  return { ...after, values };
}

/**
 * Draws a map, one pixel per value; a large one is reduced to the strongest value of each block.
 * @param {HTMLCanvasElement} canvas @param {Map1} map @param {Uint32Array} colors @param {boolean} isDifference
 * @param {number} [most] pixels of a side
 */
export function drawMap(canvas, map, colors, isDifference, most = SMALL) {
  const step = Math.max(1, Math.ceil(map.tokens / most));
  const side = Math.ceil(map.tokens / step);
  const pixels = new Uint32Array(side * side);
  for (let r = 0; r < side; r += 1) {
    for (let c = 0; c < side; c += 1)
      pixels[r * side + c] =
        colors[
          step === 1
            ? map.values[r * map.tokens + c]
            : strongest(map, r * step, c * step, step, isDifference)
        ];
  }
  canvas.width = side;
  canvas.height = side;
  canvas
    .getContext("2d")
    ?.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), side, side), 0, 0);
}

/** @param {Map1} map @param {number} row @param {number} column @param {number} step @param {boolean} isDifference */
function strongest(map, row, column, step, isDifference) {
  const none = isDifference ? 128 : 0;
  let kept = none;
  for (let r = row; r < Math.min(row + step, map.tokens); r += 1) {
    for (let c = column; c < Math.min(column + step, map.tokens); c += 1) {
      const value = map.values[r * map.tokens + c];
      if (Math.abs(value - none) > Math.abs(kept - none)) kept = value;
    }
  }
  return kept;
}

/** A byte as a share, or as a change. @param {number} byte @param {boolean} isDifference */
export const shareOf = (byte, isDifference) => (isDifference ? (byte - 128) / 127 : byte / 255);

/** The token that each token attends to most. @param {Map1} map @returns {[number, number][]} to, byte */
export function mostAttended(map) {
  return Array.from({ length: map.tokens }, (_, r) => {
    const row = map.values.subarray(r * map.tokens, (r + 1) * map.tokens);
    const to = row.indexOf(Math.max(...row));
    return [to, row[to]];
  });
}
