// What base and edited model answer to a text, side by side, whatever the model's job is.

import { h, said, scroll } from "../elements.js";
import { percent, plainNumber } from "../numbers.js";

/** @typedef {import("../api.js").Prediction} Prediction */
/** @typedef {import("../api.js").Reading} Reading */

const MOST = 8; // labels shown

/**
 * @param {Reading} reading
 * @param {{edited: boolean, gold: string, mask: string | null}} about
 * @returns {HTMLElement[]}
 */
export function answers(reading, about) {
  const { kind, before, after } = reading;
  if (kind === "words" && !before.length)
    return [
      h(
        "p",
        { class: "note" },
        "Put ",
        h("code", {}, about.mask ?? "the mask token"),
        " into the text to see what the model would write there.",
      ),
    ];
  if (!after.length) return [];
  if (kind === "tags") return [tags(reading)];
  if (kind === "words") return [guesses(reading)];
  if (kind === "number" || kind === "similarity") return [values(before, after)];
  return [headline(before, after, about), shares(before, after)];
}

/** A label; a span without words is no answer. @param {string} label */
const named = (label) => (label === "" ? h("i", {}, "no answer") : said(label));

/** @param {Prediction[]} all */
const best = (all) => all.reduce((a, b) => (b.share > a.share ? b : a));

/** @param {Prediction[]} before @param {Prediction[]} after @param {{edited: boolean, gold: string}} about */
function headline(before, after, { edited, gold }) {
  const [was, is] = [best(before), best(after)];
  const flips = was.label !== is.label;
  const answer = (/** @type {Prediction} */ one) => [
    h("b", {}, named(one.label)),
    ` ${percent(one.share)} %`,
  ];
  const verdict =
    gold === ""
      ? null
      : h(
          "span",
          { class: is.label === gold ? "verdict" : "verdict wrong" },
          is.label === gold ? "as labelled" : "not as labelled",
        );
  if (!edited) return h("p", { class: "headline" }, ...answer(was), " ", verdict);
  return h(
    "p",
    { class: flips ? "headline flips" : "headline" },
    h("span", { class: "was" }, ...answer(was)),
    " → ",
    h("span", { class: "is" }, ...answer(is)),
    " ",
    verdict,
  );
}

/** @param {Prediction[]} before @param {Prediction[]} after */
function shares(before, after) {
  const later = new Map(after.map((one) => [one.label, one.share]));
  const earlier = new Map(before.map((one) => [one.label, one.share]));
  const labels = [...new Set([...earlier.keys(), ...later.keys()])];
  const largest = (/** @type {string} */ label) =>
    Math.max(earlier.get(label) ?? 0, later.get(label) ?? 0);
  const listed =
    labels.length > MOST ? labels.sort((a, b) => largest(b) - largest(a)).slice(0, MOST) : labels;
  const rows = listed.map((label) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, named(label)),
      bar(earlier.get(label), "before"),
      bar(later.get(label), "after"),
    ),
  );
  return h(
    "table",
    { class: "shares" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "label"),
        h("th", { scope: "col" }, "before"),
        h("th", { scope: "col" }, "after"),
      ),
    ),
    h("tbody", {}, ...rows),
  );
}

/** @param {number | undefined} share @param {string} kind */
function bar(share, kind) {
  const length = h("i", { class: kind, "aria-hidden": "true" });
  length.style.width = `${100 * Math.min(Math.max(share ?? 0, 0), 1)}%`;
  return h(
    "td",
    {},
    h(
      "span",
      { class: "bar" },
      h("span", { class: "track" }, length),
      h("span", { class: "n" }, share === undefined ? "–" : `${percent(share)} %`),
    ),
  );
}

/** @param {Prediction[]} before @param {Prediction[]} after */
function values(before, after) {
  const earlier = new Map(before.map((one) => [one.label, one.share]));
  const rows = after.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, said(one.label)),
      h("td", { class: "n" }, plainNumber(earlier.get(one.label))),
      h("td", { class: "n strong" }, plainNumber(one.share)),
    ),
  );
  return h(
    "table",
    { class: "values" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, ""),
        h("th", { scope: "col", class: "n" }, "before"),
        h("th", { scope: "col", class: "n" }, "after"),
      ),
    ),
    h("tbody", {}, ...rows),
  );
}

/** The places of a text that have an answer. @param {Prediction[]} all */
const placesOf = (all) => [...new Set(all.map((one) => Number(one.token)))];

/** Labels of tokens: one column per token that has one. @param {Reading} reading */
function tags({ tokens, before, after }) {
  const places = placesOf(before);
  const was = new Map(before.map((one) => [one.token, one.label]));
  const line = (/** @type {string} */ name, /** @type {Prediction[]} */ all) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      ...places.map((place) => {
        const one = all.find((each) => each.token === place);
        if (!one) return h("td", {}, "–");
        const text = said(one.label);
        const title = `${percent(one.share)} %`;
        return h("td", { title }, one.label === was.get(place) ? text : h("mark", {}, text));
      }),
    );
  const heads = places.map((place) => h("th", { scope: "col" }, said(tokens[place] ?? "")));
  return scroll(
    "Answers by token",
    h(
      "table",
      { class: "sentences" },
      h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
      h("tbody", {}, line("before", before), line("after", after)),
    ),
  );
}

/** Words at masks, likeliest first: two columns per mask, before and after. @param {Reading} reading */
function guesses({ tokens, before, after }) {
  const places = placesOf(before);
  const columns = places.flatMap((place) =>
    [before, after].map((all) => all.filter((one) => one.token === place)),
  );
  const cell = (
    /** @type {Prediction[]} */ column,
    /** @type {number} */ i,
    /** @type {number} */ rank,
  ) => {
    const one = column[rank];
    if (!one) return h("td", {}, "–");
    const isNew = i % 2 === 1 && !columns[i - 1].some((each) => each.label === one.label);
    return h(
      "td",
      {},
      isNew ? h("mark", {}, said(one.label)) : said(one.label),
      h("span", { class: "soft" }, ` ${percent(one.share)} %`),
    );
  };
  const ranks = Math.max(...columns.map((column) => column.length));
  return scroll(
    "Words at the masks",
    h(
      "table",
      { class: "guesses" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...places.map((place) =>
            h(
              "th",
              { scope: "colgroup", colspan: 2 },
              said(tokens[place] ?? ""),
              h("span", { class: "soft" }, ` token ${place}`),
            ),
          ),
        ),
        h(
          "tr",
          {},
          ...columns.map((_, i) => h("th", { scope: "col" }, i % 2 ? "after" : "before")),
        ),
      ),
      h(
        "tbody",
        {},
        ...Array.from({ length: ranks }, (_, rank) =>
          h("tr", {}, ...columns.map((column, i) => cell(column, i, rank))),
        ),
      ),
    ),
  );
}
