// Numbers as the report writes them: percent with one decimal, a true minus, points for changes.

/** @param {number} value @param {number} digits */
const fixed = (value, digits) => {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
};

/** @param {number | null | undefined} value */
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** @param {number | null | undefined} value 0 to 1 */
export const percent = (value, digits = 1) =>
  isNumber(value) ? fixed(100 * Number(value), digits) : "–";

/** @param {number | null | undefined} value */
export const plainNumber = (value, digits = 3) =>
  isNumber(value) ? fixed(Number(value), digits) : "–";

/** A change in points, with its sign. @param {number | null | undefined} value */
export function points(value) {
  if (!isNumber(value)) return "–";
  const text = fixed(100 * Number(value), 1);
  return text.startsWith("−") || Number(text) === 0 ? text : `+${text}`;
}

/** @param {number | null | undefined} low @param {number | null | undefined} high */
export const between = (low, high) =>
  isNumber(low) && isNumber(high) ? `${points(low)} to ${points(high)}` : "";

/** @param {number | null | undefined} value */
export function milliseconds(value) {
  return isNumber(value) ? fixed(Number(value), Number(value) < 10 ? 2 : 1) : "–";
}

/** Times as fast as the base: both are measured by turns, so load on the machine cancels out. @param {number | null | undefined} value */
export const times = (value) => (isNumber(value) ? `${fixed(Number(value), 2)}×` : "–");

/** @param {number} n @param {string} one */
export const counted = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

/**
 * Round numbers that enclose a range: steps of 1, 2 or 5 times a power of ten.
 * @param {number} low @param {number} high @param {number} n about how many
 */
export function ticks(low, high, n) {
  if (!(high > low)) {
    const pad = Math.abs(low) * 0.05 || 0.5;
    [low, high] = [low - pad, high + pad];
  }
  const rough = (high - low) / Math.max(n, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough * 0.999) ?? rough;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) =>
    Number(((first + k) * step).toPrecision(12)),
  );
}

/** The decimals that tell ticks apart. @param {number[]} all */
export const decimals = (all) =>
  all.length < 2 ? 0 : Math.max(0, -Math.floor(Math.log10(all[1] - all[0]) + 1e-9));
