// Colours of maps, from the style sheet's variables, so that light, dark and the report agree.

/** @param {string} text a colour as the style sheet has it */
function rgb(text) {
  const hex = text.trim().slice(1);
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** @param {string} name */
const variable = (name) =>
  rgb(getComputedStyle(document.documentElement).getPropertyValue(`--${name}`));

/**
 * 256 colours through some stops, as pixels of a canvas.
 * @param {number[][]} stops @param {(t: number) => number} [bend] of 0 to 1
 */
function ramp(stops, bend = (t) => t) {
  const colors = new Uint8ClampedArray(256 * 4);
  for (let i = 0; i < 256; i += 1) {
    const place = bend(i / 255) * (stops.length - 1);
    const k = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c += 1)
      colors[4 * i + c] = stops[k][c] + (place - k) * (stops[k + 1][c] - stops[k][c]);
    colors[4 * i + 3] = 255;
  }
  return new Uint32Array(colors.buffer);
}

/** Attention: from paper over the accent to ink. Most values are small, so colours follow the root. */
export const attentionColors = () =>
  ramp([variable("paper"), variable("s0"), variable("ink")], (t) => 0.85 * Math.sqrt(t));

/** Differences of attention: 128 is none. */
export const differenceColors = () =>
  ramp(
    Array.from({ length: 21 }, (_, i) => variable(`d${i}`)),
    (t) => {
      const signed = Math.max(-1, (255 * t - 128) / 127);
      return 0.5 + 0.5 * Math.sign(signed) * Math.sqrt(Math.abs(signed));
    },
  );

/** Calls back whenever light becomes dark or the reverse. @param {() => void} redraw */
export function onThemeChange(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
