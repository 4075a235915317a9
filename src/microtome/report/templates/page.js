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
  const say = (mark) => {
    if (!mark) return hide();
    tip.textContent = mark.getAttribute("data-hint");
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.left + at.width / 2 - own.width / 2), document.documentElement.clientWidth - own.width - 8);
    tip.style.left = left + "px";
    tip.style.top = (at.top > own.height + 12 ? at.top - own.height - 8 : at.bottom + 8) + "px";
  };
  document.addEventListener("pointerover", (event) => say(event.target.closest("[data-hint]")));
  document.addEventListener("scroll", hide, true);

  // The same by keyboard: arrows go from mark to mark in a figure that has the focus.
  for (const plot of document.querySelectorAll(".plot")) {
    let at = -1;
    const leave = () => { plot.querySelector(".on")?.classList.remove("on"); hide(); };
    plot.addEventListener("keydown", (event) => {
      const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const marks = [...plot.querySelectorAll("[data-hint]")].filter((one) => one.getClientRects().length);
      if (event.key === "Escape") leave();
      if (!way || !marks.length) return;
      event.preventDefault();
      leave();
      at = (at + way + marks.length) % marks.length;
      marks[at].classList.add("on");
      say(marks[at]);
    });
    plot.addEventListener("blur", leave);
  }

  // The table of contents says where the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const parts = [...document.querySelectorAll("section")].filter((part) => links.has(part.id));
  const follow = () => {
    const here = parts.findLast((part) => part.getBoundingClientRect().top < innerHeight / 3) || parts[0];
    for (const [id, link] of links) {
      if (id === here.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  addEventListener("scroll", follow, { passive: true });
  follow();

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
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    if (rows.length < 2) continue;
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
        rows.sort((a, b) => compare(key(a, i), key(b, i), way));
        const first = Number(table.dataset.first); // the others stay folded
        table.tBodies[0].append(...rows.slice(0, first));
        if (table.tBodies[1]) table.tBodies[1].append(...rows.slice(first));
      });
    });
  }
  // A closed method would be missing on paper.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();
