"use strict";
(() => {
  // Hover: the hint of a mark, at once; without script the browser shows it after a while.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  for (const title of document.querySelectorAll("svg title")) {
    title.parentNode.setAttribute("data-hint", title.textContent);
    title.remove();
  }
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-hint]");
    if (!mark) return hide();
    tip.textContent = mark.getAttribute("data-hint");
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - own.width / 2), document.documentElement.clientWidth - own.width - 8);
    tip.style.left = left + "px";
    tip.style.top = (at.top > own.height + 12 ? at.top - own.height - 8 : at.bottom + 8) + "px";
  });
  document.addEventListener("scroll", hide, true);

  // Sorting: a click on a heading, numbers by value, missing ones last.
  const key = (row, i) => {
    const cell = row.cells[i];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (a, b, way) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return way * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    const heads = table.tHead.rows[table.tHead.rows.length - 1].cells; // below groups of columns
    [...heads].forEach((head, i) => {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const way = head.getAttribute("aria-sort") === "descending" ? 1 : head.hasAttribute("aria-sort") || !head.classList.contains("n") ? (head.getAttribute("aria-sort") === "ascending" ? -1 : 1) : -1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        body.append(...[...body.rows].sort((a, b) => compare(key(a, i), key(b, i), way)));
      });
    });
  }
  // A closed method would be missing on paper.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
