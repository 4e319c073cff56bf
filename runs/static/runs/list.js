// Lists whose rows can be selected: all of the page, and a range with Shift; their
// filters apply at once, and keys move from row to row. Without this script each row is
// selected by its box.
(() => {
  "use strict";
  const BOX = ":is(.sel, .pick) input[name]";
  const boxesOf = (form) => [...form.elements].filter((one) => one.matches(BOX));
  let last = ""; // the row whose box was clicked last: a range begins there

  function showAll(form) {
    const boxes = boxesOf(form);
    const count = boxes.filter((box) => box.checked).length;
    for (const all of form.querySelectorAll("[data-select-page]")) {
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
    }
  }
  function showAllForms() {
    for (const form of document.forms) showAll(form);
  }

  document.addEventListener("click", (event) => {
    const box = event.target.closest?.(BOX);
    if (!box) return;
    const boxes = boxesOf(box.form);
    const from = boxes.findIndex((one) => one.value === last);
    const [first, end] = [from, boxes.indexOf(box)].sort((a, b) => a - b);
    if (event.shiftKey && from >= 0)
      for (const one of boxes.slice(first, end + 1)) one.checked = box.checked;
    last = box.value;
    showAll(box.form);
  });
  document.addEventListener("change", (event) => {
    const all = event.target.closest?.("[data-select-page]");
    if (!all) return;
    for (const box of boxesOf(all.form)) box.checked = all.checked;
    showAll(all.form);
  });
  document.addEventListener("reset", (event) => setTimeout(showAll, 0, event.target));
  document.addEventListener("htmx:after:swap", showAllForms);
  // Short addresses: what is not filtered by is left out.
  document.addEventListener("htmx:config:request", (event) => {
    if (!event.target.closest(".filter-row")) return;
    const { body } = event.detail.ctx.request;
    for (const [name, value] of [...body]) if (!value) body.delete(name);
  });
  addEventListener("pageshow", showAllForms);

  // Keys. The current row has the focus; at first, it is the one that the page shows.
  const ROW = "form :is(tbody tr, ul > li):has(a[href])";
  const linkOf = (row) => row.querySelector("a[href]");
  const current = () =>
    document.activeElement.closest(ROW) ??
    document.querySelector("form li > a[aria-current]")?.closest(ROW);
  function go(step) {
    const rows = [...document.querySelectorAll(ROW)];
    const place = rows.indexOf(current());
    const next = place < 0 ? 0 : Math.min(Math.max(place + step, 0), rows.length - 1);
    if (rows[next]) linkOf(rows[next]).focus();
  }
  function pick(isRange) {
    const box = current()?.querySelector(BOX);
    if (box && isRange) box.checked = false; // which the click changes
    box?.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: isRange }));
  }
  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    x: () => pick(false),
    X: () => pick(true),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
      return;
    const isText = event.target.closest(
      "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]",
    );
    if (isText || document.querySelector("dialog[open]")) return;
    if (!KEYS[event.key] || !document.querySelector(ROW)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
})();
