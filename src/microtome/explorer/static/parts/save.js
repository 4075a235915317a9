// Save: the checkpoint through `operate`, and its certificate, check by check.

import { post } from "../api.js";
import { announce, at, h, icon, replace, said } from "../elements.js";

/** @typedef {import("../api.js").Check} Check */
/** @typedef {import("../api.js").Model} Model */
/** @typedef {import("../table.js").Table} Table */

export class SaveDialog {
  /** @param {Table} table @param {Model} model */
  constructor(table, model) {
    this.table = table;
    this.model = model;
    this.dialog = /** @type {HTMLDialogElement} */ (at("save"));
  }

  open() {
    const folder = h("input", {
      id: "folder",
      type: "text",
      required: true,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      value: suggested(this.table.edit, this.model.model ?? "model"),
    });
    const out = h("div", { class: "outcome" });
    const submit = h("button", { type: "submit", class: "primary" }, "Save");
    const command = h("code", {});
    const show = () => replace(command, said(this.#command(folder.value)));
    folder.addEventListener("input", show);
    show();
    const form = h(
      "form",
      {
        onsubmit: (/** @type {SubmitEvent} */ event) => (
          event.preventDefault(),
          this.#save(folder, submit, out)
        ),
      },
      h("h2", { id: "save-title" }, "Save the edited model"),
      h(
        "p",
        {},
        "A checkpoint that plain transformers loads, with a certificate of what was changed.",
      ),
      h("p", { class: "code" }, said(this.table.edit || "the model as it is")),
      h("div", { class: "field" }, h("label", { for: "folder" }, "Name of a new folder"), folder),
      ...(this.model.operate
        ? [h("p", { class: "note" }, "The same on the command line:"), h("pre", {}, command)]
        : []),
      out,
      h(
        "div",
        { class: "ends" },
        h("button", { type: "button", onclick: () => this.dialog.close() }, "Close"),
        submit,
      ),
    );
    replace(this.dialog, form);
    this.dialog.showModal();
    folder.focus();
    folder.select();
  }

  /** @param {string} folder */
  #command(folder) {
    const quoted = (/** @type {string} */ text) =>
      /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
    const { model, out, operate } = this.model;
    const parts = [model ?? "MODEL", this.table.edit, ...(operate ?? [])].map(quoted);
    return `microtome operate ${parts.join(" ")} --out ${quoted(`${out}/${folder || "DIR"}`)}`;
  }

  /** @param {HTMLInputElement} folder @param {HTMLButtonElement} submit @param {HTMLElement} out */
  async #save(folder, submit, out) {
    submit.disabled = true;
    replace(out, h("p", { class: "note" }, "Saving, loading again, comparing …"));
    try {
      const saved = await post("save", { edit: this.table.edit, folder: folder.value });
      const { passed, checks } = /** @type {{passed: boolean, checks: Check[]}} */ (
        saved.certificate
      );
      replace(
        out,
        h(
          "p",
          { class: "saved" },
          passed ? "Saved and proven: " : "Saved, but the certificate failed: ",
          h("code", { id: "saved-path" }, said(saved.out)),
        ),
        h(
          "ul",
          { class: "checks" },
          ...checks.map((check) =>
            h(
              "li",
              { class: check.passed ? "" : "failed" },
              icon(check.passed ? "ok" : "remove"),
              h("span", { class: "unseen" }, check.passed ? "passed: " : "failed: "),
              h("b", {}, said(check.name)),
              h("span", {}, said(check.detail)),
            ),
          ),
        ),
      );
      announce(
        passed ? `Saved; all ${checks.length} checks passed` : "Saved; the certificate failed",
      );
    } catch (error) {
      const refused = /** @type {Error & {hint?: string}} */ (error);
      replace(
        out,
        h(
          "p",
          { class: "problem", role: "alert" },
          [refused.message, refused.hint].filter(Boolean).join("; "),
        ),
      );
    }
    submit.disabled = false;
  }
}

/** A folder's name from an edit: letters and digits only. @param {string} edit @param {string} model */
function suggested(edit, model) {
  const name = (/** @type {string} */ text) =>
    text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
  const stem = name(model.split(/[\\/]/).filter(Boolean).pop() ?? "") || "model";
  return `${stem}-${name(edit) || "copy"}`.slice(0, 60).replace(/-$/, "");
}
