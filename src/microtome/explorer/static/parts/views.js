// The views of a run, drawn from data as the report draws them: heat maps, tables, sentences here, curves
// and bars in charts.js.

import { h, said, scroll } from "../elements.js";
import { isNumber, percent, plainNumber } from "../numbers.js";
import { bars, curve } from "./charts.js";

/** @typedef {{edit?: (text: string) => void, head?: (i: number, j: number) => (() => void) | null}} Links */
/** @typedef {{title: string, row_label: string, column_label: string, rows: string[], columns: string[], values: (number | null)[][], value_label: string, marked: [number, number][], diverging: boolean, percent: boolean, mark_label: string, span: [number, number] | null}} HeatMap */
/** @typedef {{title: string, columns: string[], rows: any[][], percent: string[], groups?: [string, number][], better?: [number, number][], worse?: [number, number][]}} Rows */
/** @typedef {{title: string, tokens: string[], decoded: [string, string[]][]}} Sentences */

const N_STEPS = 21;
const EDIT = /^[a-z]+\(.*\)$/; // a cell that says an edit

/** @param {any} data @param {Links} links @returns {HTMLElement} */
export function view(data, links) {
  return h(
    "figure",
    { class: "view" },
    data.title ? h("figcaption", {}, said(data.title)) : null,
    content(data, links),
  );
}

/** Views are told apart by what they have: those inside panels carry no name. @param {any} data @param {Links} links */
function content(data, links) {
  if (data.panels)
    return h(
      "div",
      { class: "panels" },
      ...data.panels.map((/** @type {any} */ panel) => view(panel, links)),
    );
  if (data.decoded) return sentences(data);
  if (data.values) return heatMap(data, links);
  if (data.series) return data.groups ? bars(data) : curve(data);
  return table(data, links);
}

/** @param {HeatMap} data @param {Links} links */
function heatMap(data, links) {
  const known = data.values.flat().filter(isNumber).map(Number);
  const [low, high] =
    data.span ?? (known.length ? [Math.min(...known), Math.max(...known)] : [0, 1]);
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const step = (/** @type {number} */ v) => {
    const t = data.diverging ? 0.5 + v / reach / 2 : (v - low) / (high - low || 1);
    return Math.round(Math.min(Math.max(t, 0), 1) * (N_STEPS - 1));
  };
  const marked = new Set(data.marked.map(([i, j]) => `${i} ${j}`));
  const isHeads = data.row_label === "layer" && data.column_label === "head";
  const body = data.rows.map((row, i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, said(row)),
      ...data.columns.map((column, j) => {
        const value = data.values[i][j];
        if (!isNumber(value)) return h("td", { class: "none" }, "–");
        const text = data.percent ? percent(value) : plainNumber(value, 2);
        const isMarked = marked.has(`${i} ${j}`);
        const label = `${data.row_label} ${row}, ${data.column_label} ${column}: ${text} ${data.value_label}${isMarked ? `, ${data.mark_label}` : ""}`;
        const act = isHeads ? links.head?.(Number(row), Number(column)) : null;
        const shown = isMarked ? h("b", {}, text, " ◆") : text;
        const cell = h(
          "td",
          { title: label },
          act
            ? h(
                "button",
                {
                  type: "button",
                  title: `${label}. Put disable(${row}.${column}) on the table`,
                  onclick: act,
                },
                shown,
              )
            : shown,
        );
        const name = `${data.diverging ? "d" : "q"}${step(Number(value))}`;
        cell.style.background = `var(--${name})`;
        cell.style.color = `var(--${name}t)`;
        return cell;
      }),
    ),
  );
  return h(
    "div",
    {},
    scroll(
      data.title,
      h(
        "table",
        { class: "heat" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { class: "soft" }, `${data.row_label} ↓ ${data.column_label} →`),
            ...data.columns.map((column) => h("th", { scope: "col" }, said(column))),
          ),
        ),
        h("tbody", {}, ...body),
      ),
    ),
    h("p", { class: "note" }, data.value_label, data.marked.length ? `; ◆ ${data.mark_label}` : ""),
  );
}

/** @param {Rows} data @param {Links} links */
function table(data, links) {
  const numeric = data.columns.map(
    (_, j) =>
      data.rows.some((row) => isNumber(row[j])) &&
      data.rows.every((row) => row[j] === null || isNumber(row[j])),
  );
  const text = (/** @type {any} */ value, /** @type {number} */ j) => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (!isNumber(value)) return said(String(value));
    if (data.percent.includes(data.columns[j])) return percent(value);
    return Number.isInteger(value) ? value.toLocaleString("en") : plainNumber(value);
  };
  const cell = (/** @type {any} */ value, /** @type {number} */ j) =>
    links.edit && typeof value === "string" && EDIT.test(value)
      ? h(
          "button",
          {
            type: "button",
            class: "link code",
            title: "Put on the table",
            onclick: () => links.edit?.(String(value)),
          },
          said(String(value)),
        )
      : text(value, j);
  const marks = new Map([
    ...(data.better ?? []).map(
      ([i, j]) => /** @type {[string, string]} */ ([`${i} ${j}`, "better"]),
    ),
    ...(data.worse ?? []).map(([i, j]) => /** @type {[string, string]} */ ([`${i} ${j}`, "worse"])),
  ]);
  const groups = data.groups?.length
    ? h(
        "tr",
        {},
        ...data.groups.map(([name, span]) =>
          h("th", { scope: "colgroup", colspan: span }, said(name)),
        ),
      )
    : null;
  return scroll(
    data.title,
    h(
      "table",
      {},
      h(
        "thead",
        {},
        groups,
        h(
          "tr",
          {},
          ...data.columns.map((name, j) =>
            h(
              "th",
              { scope: "col", class: numeric[j] ? "n" : "" },
              said(name.replaceAll("_", " ")),
              data.percent.includes(name) ? " %" : null,
            ),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        ...data.rows.map((row, i) =>
          h(
            "tr",
            {},
            ...row.map((value, j) =>
              h(
                "td",
                {
                  class: `${numeric[j] ? "n" : ""} ${marks.get(`${i} ${j}`) ?? ""}`,
                  title: marks.get(`${i} ${j}`),
                },
                cell(value, j),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {Sentences} data */
function sentences(data) {
  return scroll(
    data.title,
    h(
      "table",
      { class: "sentences" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          ...data.tokens.map((token) => h("th", { scope: "col" }, said(token))),
        ),
      ),
      h(
        "tbody",
        {},
        ...data.decoded.map(([label, tokens]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, said(label)),
            ...tokens.map((token, i) =>
              h("td", {}, token === data.tokens[i] ? said(token) : h("mark", {}, said(token))),
            ),
          ),
        ),
      ),
    ),
  );
}
