// Curves and bars of a run, in the report's colours.

import { h, s, said, scroll } from "../elements.js";
import { decimals, isNumber, percent, plainNumber, ticks } from "../numbers.js";

/** @typedef {{name: string, x: number[], y: (number | null)[], low: (number | null)[], high: (number | null)[], is_control: boolean}} Series */
/** @typedef {{title: string, x_label: string, y_label: string, series: Series[], percent: boolean, divider?: number | null, divider_label?: string, levels?: {name: string, y: number}[]}} Curve */
/** @typedef {{title: string, x_label: string, y_label: string, groups: string[], series: {name: string, values: (number | null)[]}[], stacked: boolean, percent: boolean}} Bars */

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 300, 46, 18, 28, 42];
const N_SERIES = 6;

/** @param {Curve} data */
export function curve(data) {
  const factor = data.percent ? 100 : 1;
  const xs = data.series.flatMap((line) => line.x);
  const levels = data.levels ?? [];
  const all = [
    ...data.series.flatMap((line) => [...line.y, ...line.low, ...line.high]),
    ...levels.map((level) => level.y),
  ]
    .filter(isNumber)
    .map((v) => factor * Number(v));
  if (!all.length) return h("p", { class: "note" }, "No values.");
  const ys = ticks(Math.min(...all), Math.max(...all), 5);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const x = (/** @type {number} */ v) =>
    LEFT + 6 + (last > first ? (v - first) / (last - first) : 0.5) * (WIDTH - RIGHT - LEFT - 6);
  const y = (/** @type {number} */ v) =>
    HEIGHT -
    BOTTOM -
    ((factor * v - ys[0]) / (ys[ys.length - 1] - ys[0])) * (HEIGHT - BOTTOM - TOP);
  const marks = ticks(first, last, 12).filter(
    (tick) =>
      tick >= first && tick <= last && (Number.isInteger(tick) || !xs.every(Number.isInteger)),
  );
  const svg = s(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `${data.title}: ${data.y_label} over ${data.x_label}`,
    },
    s("text", { class: "name", x: 2, y: 14 }, data.percent ? `${data.y_label} (%)` : data.y_label),
    ...ys.flatMap((tick) => [
      s("line", {
        class: "grid",
        x1: LEFT,
        x2: WIDTH - 10,
        y1: y(tick / factor),
        y2: y(tick / factor),
      }),
      s(
        "text",
        { class: "label", x: LEFT - 8, y: y(tick / factor) + 4, "text-anchor": "end" },
        tick.toFixed(decimals(ys)).replace("-", "−"),
      ),
    ]),
    ...marks.map((tick) =>
      s(
        "text",
        { class: "label", x: x(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" },
        tick,
      ),
    ),
    s("line", {
      class: "axis",
      x1: LEFT,
      x2: WIDTH - 10,
      y1: HEIGHT - BOTTOM,
      y2: HEIGHT - BOTTOM,
    }),
    s(
      "text",
      { class: "name", x: (LEFT + WIDTH) / 2, y: HEIGHT - 4, "text-anchor": "middle" },
      data.x_label,
    ),
    ...(isNumber(data.divider)
      ? [
          s("line", {
            class: "divider",
            x1: x(Number(data.divider)),
            x2: x(Number(data.divider)),
            y1: TOP,
            y2: HEIGHT - BOTTOM,
          }),
          s(
            "text",
            { class: "label", x: x(Number(data.divider)) + 6, y: TOP + 10 },
            data.divider_label,
          ),
        ]
      : []),
    ...levels.map((level) =>
      s(
        "line",
        { class: "divider", x1: LEFT, x2: WIDTH - 10, y1: y(level.y), y2: y(level.y) },
        s("title", {}, `${level.name}: ${data.percent ? percent(level.y) : plainNumber(level.y)}`),
      ),
    ),
    ...data.series.flatMap((line, i) => lineOf(line, i % N_SERIES, x, y, data)),
  );
  return h("div", {}, data.series.length > 1 ? legend(data.series) : null, scroll(data.title, svg));
}

/** @param {{name: string, is_control?: boolean}[]} series */
function legend(series) {
  return h(
    "p",
    { class: "legend" },
    ...series.map((line, i) =>
      h(
        "span",
        {},
        h("i", {
          class: `key s${i % N_SERIES}${line.is_control ? " dashed" : ""}`,
          "aria-hidden": "true",
        }),
        said(line.name),
      ),
    ),
  );
}

/** Bars as a table whose cells have lengths: it reads aloud as it looks. @param {Bars} data */
export function bars(data) {
  const most = Math.max(
    ...data.series
      .flatMap((one) => one.values)
      .filter(isNumber)
      .map((v) => Math.abs(Number(v))),
    1e-9,
  );
  const cell = (/** @type {number | null} */ value, /** @type {number} */ i) => {
    const length = h("i", { class: `fill${i % N_SERIES}`, "aria-hidden": "true" });
    length.style.width = `${(100 * Math.abs(value ?? 0)) / most}%`;
    return h(
      "td",
      {},
      h(
        "span",
        { class: "bar" },
        h("span", { class: "track" }, length),
        h("span", { class: "n" }, data.percent ? percent(value) : plainNumber(value)),
      ),
    );
  };
  return scroll(
    data.title,
    h(
      "table",
      { class: "bars" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, said(data.x_label)),
          ...data.series.map((one) =>
            h("th", { scope: "col" }, said(one.name || data.y_label), data.percent ? " %" : null),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        ...data.groups.map((group, k) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, said(group)),
            ...data.series.map((one, i) => cell(one.values[k], i)),
          ),
        ),
      ),
    ),
  );
}

/** @param {Series} line @param {number} color @param {(v: number) => number} x @param {(v: number) => number} y @param {Curve} data */
function lineOf(line, color, x, y, data) {
  const known = line.x.map((_, k) => k).filter((k) => isNumber(line.y[k]));
  const point = (/** @type {(number | null)[]} */ values) => (/** @type {number} */ k) =>
    `${x(line.x[k])},${y(Number(values[k]))}`;
  const banded = known.filter((k) => isNumber(line.low[k]) && isNumber(line.high[k]));
  const text = (/** @type {number | null} */ v) =>
    data.percent ? `${percent(v)} %` : plainNumber(v);
  return [
    banded.length > 1
      ? s("polygon", {
          class: `band${color}`,
          points: [...banded.map(point(line.low)), ...banded.reverse().map(point(line.high))].join(
            " ",
          ),
        })
      : null,
    s("polyline", {
      class: `${line.is_control ? "control" : "line"}${color}`,
      points: known.map(point(line.y)).join(" "),
    }),
    ...known.map((k) =>
      s(
        "circle",
        { class: `dot${color}`, cx: x(line.x[k]), cy: y(Number(line.y[k])), r: 4 },
        s("title", {}, `${line.name}, ${data.x_label} ${line.x[k]}: ${text(line.y[k])}`),
      ),
    ),
  ];
}
