// Elements of the page. Text becomes text nodes and attributes, never markup: what a model, a file or
// a person wrote can't be anything but text here.

/** @typedef {string | number | Node | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";
const PICTURES = {
  remove: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  duplicate: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  up: "M8 12.5v-9M4 7.5l4-4 4 4",
  down: "M8 3.5v9M4 8.5l4 4 4-4",
  undo: "M6 3.5L2.8 6.7 6 9.9M3 6.7h6.2a3.6 3.6 0 0 1 0 7.2H7",
  redo: "M10 3.5l3.2 3.2L10 9.9M13 6.7H6.8a3.6 3.6 0 0 0 0 7.2H9",
  back: "M10 3.5L5.5 8 10 12.5",
  next: "M6 3.5L10.5 8 6 12.5",
  restore: "M3.5 8h9M8 3.5v9",
  ok: "M3 8.5l3.5 3.5L13 4.5",
  handle: "M6 4h.01M10 4h.01M6 8h.01M10 8h.01M6 12h.01M10 12h.01",
};

/**
 * @param {Element} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

/**
 * An HTML element; attributes named on… are listeners.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export function s(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  fill(element, attributes, children);
  return element;
}

/** Text that another person wrote: its direction stays inside. @param {string} text */
export const said = (text) => h("bdi", {}, text);

/** What a folder is called, without where it is. @param {string} path */
export const lastPart = (path) => path.split("/").filter(Boolean).pop() ?? path;

/** @param {keyof typeof PICTURES} name */
export function icon(name) {
  return s(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: PICTURES[name] }),
  );
}

/**
 * A button with a picture; its label is what a screen reader says and what hovering shows.
 * @param {keyof typeof PICTURES} picture
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 * @param {Attributes} [more]
 */
export function tool(picture, label, onclick, more = {}) {
  return h(
    "button",
    { type: "button", class: "tool", "aria-label": label, title: label, onclick, ...more },
    icon(picture),
  );
}

/** @param {string} id @returns {HTMLElement} */
export function at(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * New content for an element; what had the focus there keeps it, by its data-key.
 * @param {Element} element
 * @param {...Child} children
 */
export function replace(element, ...children) {
  const active = document.activeElement;
  const key =
    active instanceof HTMLElement && element.contains(active) ? active.dataset.key : undefined;
  element.replaceChildren();
  fill(element, {}, children);
  if (key) focusKey(element, key);
}

/** @param {Element} element @param {string} key */
export function focusKey(element, key) {
  const again = element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/**
 * What is drawn wide scrolls in a box that the keyboard reaches too.
 * @param {string} label
 * @param {...Child} children
 */
export function scroll(label, ...children) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    ...children,
  );
}

/** Says something to a screen reader. @param {string} text */
export function announce(text) {
  at("said").textContent = text;
}

/**
 * One stop of the Tab key for a whole grid of buttons; the arrow keys move inside it.
 * @param {HTMLElement} grid
 * @param {string} selector of the buttons, which have data-row and data-column
 */
export function arrowKeys(grid, selector) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  grid.addEventListener("keydown", (event) => {
    const move = moves[/** @type {keyof typeof moves} */ (event.key)];
    const from = event.target instanceof Element ? event.target.closest(selector) : null;
    if (!move || !(from instanceof HTMLElement) || event.altKey || event.ctrlKey || event.metaKey)
      return;
    const row = Number(from.dataset.row) + move[0];
    const column = Number(from.dataset.column) + move[1];
    const to = grid.querySelector(`${selector}[data-row="${row}"][data-column="${column}"]`);
    event.preventDefault();
    if (!(to instanceof HTMLElement)) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}
