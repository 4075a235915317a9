// The page: asks for the model, then builds the parts, which listen to the table.

import { get } from "./api.js";
import { AttentionPart } from "./parts/attention.js";
import { CutsPart } from "./parts/cuts.js";
import { at, h, icon, lastPart, replace, said } from "./elements.js";
import { counted } from "./numbers.js";
import { RunPart } from "./parts/run.js";
import { SaveDialog } from "./parts/save.js";
import { ScorePart, words } from "./parts/score.js";
import { StackPart } from "./parts/stack.js";
import { Table } from "./table.js";
import { TextPart } from "./parts/text.js";

/** @typedef {import("./api.js").Model} Model */

const table = new Table();
const field = /** @type {HTMLInputElement} */ (at("edit-text"));

/** @param {Model} model */
function introduce(model) {
  const name = model.model ?? String(model.run?.folder ?? "A run");
  const short = lastPart(name);
  document.title = `${short} · Microtome`;
  replace(at("model"), said(short));
  at("model").title = name;
  /** @type {[string, string][]} */
  const facts =
    model.model === null
      ? []
      : [
          ["family", model.family],
          ["job", model.job],
          ["size", `${model.layers} × ${counted(model.heads, "head")}`],
          ...(model.second
            ? [/** @type {[string, string]} */ (["compared with", lastPart(model.second)])]
            : []),
          ...(model.data
            ? [
                /** @type {[string, string]} */ ([
                  "data",
                  `${model.data.task}, ${words(model.data.primary)}`,
                ]),
              ]
            : []),
        ];
  const folder = model.run
    ? h("a", { href: "#run" }, said(lastPart(String(model.run.folder))))
    : null;
  replace(
    at("subject"),
    ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(value)))),
    folder ? h("div", {}, h("dt", {}, "run"), h("dd", {}, folder)) : null,
  );
}

/** The bar: the edit's text, and what is done with it. @param {SaveDialog} save @param {Model} model */
function bar(save, model) {
  const undo = h(
    "button",
    {
      type: "button",
      class: "tool",
      "aria-label": "Undo",
      title: "Undo (Ctrl Z)",
      onclick: () => table.undo(),
    },
    icon("undo"),
  );
  const redo = h(
    "button",
    {
      type: "button",
      class: "tool",
      "aria-label": "Redo",
      title: "Redo (Ctrl Shift Z)",
      onclick: () => table.redo(),
    },
    icon("redo"),
  );
  const reset = h(
    "button",
    { type: "button", title: "The model as it is", onclick: () => table.put("") },
    "Reset",
  );
  const link = h(
    "button",
    { type: "button", title: "The address of this edit and text", onclick: () => copy(link) },
    "Copy link",
  );
  const keep = h(
    "button",
    {
      type: "button",
      class: "primary",
      disabled: model.can.save === false,
      onclick: () => save.open(),
    },
    "Save …",
  );
  at("tools").append(undo, redo, reset, link, keep);
  const show = () => {
    if (!table.problem) field.value = table.edit;
    undo.disabled = !table.canUndo;
    redo.disabled = !table.canRedo;
    reset.disabled = table.edit === "";
    const problem = at("edit-problem");
    problem.hidden = table.problem === null;
    problem.textContent = table.problem
      ? [table.problem.message, table.problem.hint].filter(Boolean).join("; ")
      : "";
    field.setAttribute("aria-invalid", String(table.problem !== null));
  };
  table.addEventListener("edit", show);
  table.addEventListener("problem", show);
  at("bar").addEventListener("submit", (event) => (event.preventDefault(), table.put(field.value)));
  field.addEventListener("change", () => table.put(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") void table.put(table.edit);
  });
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const done = await navigator.clipboard.writeText(location.href).then(
    () => "Copied",
    () => "Copy the address",
  );
  button.textContent = done;
  setTimeout(() => {
    button.textContent = "Copy link";
  }, 1500);
}

function keys() {
  document.addEventListener("keydown", (event) => {
    const typing =
      event.target instanceof HTMLTextAreaElement ||
      (event.target instanceof HTMLInputElement && ["text", "number"].includes(event.target.type));
    if (typing || !(event.ctrlKey || event.metaKey)) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    void (key === "y" || event.shiftKey ? table.redo() : table.undo());
  });
}

/** @param {string} message @param {string} [hint] */
function stop(message, hint) {
  at("gone").textContent = [message, hint].filter(Boolean).join("; ");
  at("gone").hidden = false;
}

async function open() {
  addEventListener("gone", () =>
    stop("The server doesn't answer", "run microtome explore again and open the address it prints"),
  );
  /** @type {Model} */
  const model = await get("model");
  introduce(model);
  if (model.run) void new RunPart(table, model).open();
  if (model.model === null) {
    at("bar").hidden = true;
    return;
  }
  bar(new SaveDialog(table, model), model);
  keys();
  const stack = new StackPart(table, model);
  new ScorePart(table, model);
  if (model.data || model.run?.has_frontier) await new CutsPart(table, model).open();
  const text = new TextPart(table, model);
  new AttentionPart(table, model, (i, j) => stack.toggle(i, j));
  await table.open(model.data ? "" : "The cat sat on the mat.");
  if (!table.text) await text.take(0);
}

open().catch((error) => stop(error.message, error.hint));
