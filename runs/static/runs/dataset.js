// The table of examples: cells edited in place, the keyboard, and files dropped on it.
(() => {
  "use strict";
  const originals = new Map(); // of cells that are being edited
  let next = null; // the cell to open once the row is saved

  const cellsOf = (row) => [...row.querySelectorAll("[data-field]")];
  const rowOf = (node) => node.closest("tr[data-cell-url]");

  function edit(cell) {
    const row = rowOf(cell);
    if (!row || cell.matches(".editing")) return;
    originals.set(`${row.id} ${cell.dataset.field}`, cell.cloneNode(true));
    const query = `?field=${encodeURIComponent(cell.dataset.field)}`;
    window.htmx.ajax("GET", row.dataset.cellUrl + query, {
      target: cell,
      swap: "outerHTML",
    });
  }

  function undo(cell) {
    const original = originals.get(`${rowOf(cell)?.id} ${cell.dataset.field}`);
    if (!original) return;
    originals.clear(); // leaving the box must not undo again
    cell.replaceWith(original);
    focusCell(original);
  }

  function focusCell(cell) {
    for (const other of document.querySelectorAll("[data-field][tabindex='0']"))
      other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }

  function neighbor(cell, rows, columns) {
    const row = rowOf(cell),
      column = cellsOf(row).indexOf(cell);
    const all = [...document.querySelectorAll("tr[data-cell-url]")];
    const other = all[all.indexOf(row) + rows];
    return other && cellsOf(other)[column + columns];
  }

  function save(box) {
    if (box.value === box.defaultValue) undo(box.closest("td"));
    else if (box.reportValidity()) box.form.requestSubmit();
    else next = null;
  }

  document.addEventListener("click", (event) => {
    const cell = event.target.closest?.("[data-field]");
    if (cell && !event.target.closest("a, button, textarea")) edit(cell);
  });

  document.addEventListener("keydown", (event) => {
    const box = event.target.closest(".cellbox");
    if (box) return editKey(event, box);
    const cell = event.target.closest("[data-field]");
    if (cell) cellKey(event, cell);
    else if (event.key === "a" && !isTyping(event))
      document.querySelector("[data-add-example]")?.click();
  });

  const isTyping = (event) =>
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.target.closest("input, textarea, select, button, [contenteditable]");

  function editKey(event, box) {
    if (event.isComposing || event.keyCode === 229) return;
    const cell = box.closest("td");
    if (event.key === "Escape") {
      event.stopPropagation();
      undo(cell);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      next = { row: rowOf(cell).id, field: cell.dataset.field, opens: false };
      save(box);
    } else if (event.key === "Tab") {
      const other = neighbor(cell, 0, event.shiftKey ? -1 : 1);
      if (!other) return;
      event.preventDefault();
      next = { row: rowOf(cell).id, field: other.dataset.field, opens: true };
      const isSame = box.value === box.defaultValue;
      save(box);
      if (isSame) goNext();
    }
  }

  const MOVES = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
  };

  function cellKey(event, cell) {
    if (event.key === "Enter") {
      event.preventDefault();
      edit(cell);
    } else if (event.key in MOVES) {
      const other = neighbor(cell, ...MOVES[event.key]);
      if (!other) return;
      event.preventDefault();
      focusCell(other);
    }
  }

  function goNext() {
    if (!next) return;
    const row = document.getElementById(next.row);
    const cell = row && cellsOf(row).find((one) => one.dataset.field === next.field);
    const opens = next.opens;
    next = null;
    if (cell && opens) edit(cell);
    else if (cell) focusCell(cell);
  }

  // A click elsewhere saves, as in a spreadsheet.
  document.addEventListener("focusout", (event) => {
    const box = event.target.closest?.(".cellbox");
    if (box?.isConnected && !next && !box.matches("[aria-invalid]")) save(box);
  });

  function startTabbing() {
    const all = document.querySelectorAll("[data-field]:not(.editing)");
    for (const cell of all) if (!cell.hasAttribute("tabindex")) cell.tabIndex = -1;
    if (all.length && !document.querySelector("[data-field][tabindex='0']"))
      all[0].tabIndex = 0;
  }

  document.addEventListener("htmx:after:swap", () => {
    const box = document.querySelector(".cellbox");
    if (box && document.activeElement !== box) {
      box.focus();
      box.setSelectionRange(box.value.length, box.value.length);
    }
    startTabbing();
    if (!box) goNext();
  });

  // Files: selected ones are uploaded at once, and can be dropped anywhere.
  document.addEventListener("change", (event) => {
    if (event.target.matches("#dataset-file") && event.target.files.length)
      event.target.form.requestSubmit();
  });
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const zone = () => document.getElementById("dataset-upload");
  for (const name of ["dragover", "dragleave", "drop"])
    document.addEventListener(name, (event) => {
      if (!zone() || !holdsFiles(event)) return;
      event.preventDefault();
      document.body.toggleAttribute("data-dropping", name === "dragover");
      if (name !== "drop" || !event.dataTransfer.files.length) return;
      const input = document.getElementById("dataset-file");
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });

  // Unsaved changes are stored, so leaving is safe; Ctrl+S saves the version.
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
    const form = document.querySelector("#dataset-savebar form[data-save]");
    if (event.altKey || event.shiftKey || !form) return;
    event.preventDefault();
    form.requestSubmit();
  });

  document.addEventListener("DOMContentLoaded", startTabbing);
})();
