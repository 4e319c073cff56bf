// The table of examples: cells edited in place, the keyboard, and files dropped on it.
(() => {
  "use strict";
  let original = null; // the cell as it was before its box opened
  let saving = null; // the box whose text is being stored
  let opening = null; // the cell whose box is being loaded
  let next = null; // the cell to open or focus once that is done
  let typed = ""; // until the box is there
  const NEW_ROW = "dataset-row-0"; // until its first cell is saved

  const OUTSIDE = "body, #dataset-examples > .scroll";

  const cellsOf = (row) => [...row.querySelectorAll("[data-field]")];
  const rowOf = (node) => node.closest("tr[data-cell-url]");
  const currentCell = () => document.querySelector("[data-field][tabindex='0']");
  const isUnchanged = (box) =>
    box.value === box.defaultValue && !box.matches("[aria-invalid]");

  function edit(cell) {
    const row = rowOf(cell);
    if (!row || cell.matches(".editing")) return;
    original = cell.cloneNode(true);
    opening = cell;
    const query = `?field=${encodeURIComponent(cell.dataset.field)}`;
    window.htmx.ajax("GET", row.dataset.cellUrl + query, {
      source: row,
      target: cell,
      swap: "outerHTML",
    });
  }

  // A row at the end, whose first cell opens; it is an example once that is saved.
  function addRow(link) {
    if (saving || opening) {
      next = { link };
      return;
    }
    const box = document.querySelector(".cellbox");
    if (box) return box.focus(); // it has what cannot be saved
    original = null;
    opening = document.querySelector(".dstab tbody").insertRow();
    window.htmx.ajax("GET", link.dataset.rowUrl, {
      source: link,
      target: opening,
      swap: "outerHTML",
    });
  }

  function close(box) {
    const row = rowOf(box);
    const cell = original;
    original = null;
    box.value = box.defaultValue; // leaving the box must not save it
    if (row?.id === NEW_ROW) {
      row.id = ""; // removing it leaves the box, which closes it again
      row.remove();
    }
    if (!cell) return null;
    box.closest("td").replaceWith(cell);
    return cell;
  }

  function focusCell(cell) {
    const other = currentCell();
    if (other) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }

  function focusBox(box) {
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
    if (!typed) return;
    box.setRangeText(typed, box.value.length, box.value.length, "end");
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function neighbor(cell, rows, columns) {
    const row = rowOf(cell),
      column = cellsOf(row).indexOf(cell);
    const all = [...document.querySelectorAll("tr[data-cell-url]")];
    const other = all[all.indexOf(row) + rows];
    return other && cellsOf(other)[column + columns];
  }

  function save(box) {
    if (!box.reportValidity()) return forgetNext();
    saving = box;
    box.readOnly = true;
    box.form.requestSubmit();
  }

  // The other cell opens, or gets the focus, once the text of the box is saved.
  function leave(box, cell, { opens }) {
    next = { row: rowOf(cell).id, field: cell.dataset.field, opens };
    if (!isUnchanged(box)) return save(box);
    close(box);
    goNext();
  }

  function pick(cell) {
    const box = document.querySelector(".cellbox");
    if (cell === opening || cell.matches(".editing")) return;
    if (saving || opening) {
      next = { row: rowOf(cell).id, field: cell.dataset.field, opens: true };
      typed = "";
    } else if (box) leave(box, cell, { opens: true });
    else edit(cell);
  }

  const pickedCell = (event) =>
    event.target.closest?.("a, button, textarea")
      ? null
      : event.target.closest?.("tr[data-cell-url] [data-field]");

  // Saving replaces the row, so that a click may never arrive: the press counts. The
  // focus stays in the box until its text is saved.
  let isPicked = false;
  document.addEventListener("mousedown", (event) => {
    const cell = pickedCell(event);
    isPicked = false;
    if (!cell) return forgetNext();
    const isBusy = saving || opening || document.querySelector(".cellbox");
    if (event.button !== 0 || !isBusy) return;
    event.preventDefault();
    isPicked = true;
    pick(cell);
  });

  document.addEventListener("click", (event) => {
    const cell = pickedCell(event);
    if (cell && !isPicked) pick(cell);
    isPicked = false;
  });

  // Keys pressed before the box has opened are text for it, not shortcuts.
  const HELD = ["Backspace", "Enter", "Escape", "Tab"];
  function holdKey(event) {
    if (!(saving || opening) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea:not(.cellbox), select")) return;
    if (event.key.length > 1 && !HELD.includes(event.key)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key === "Escape") forgetNext();
    else if (event.key === "Backspace") typed = typed.slice(0, -1);
    else if (event.key.length === 1) typed += event.key;
  }
  window.addEventListener("keydown", holdKey, true);

  document.addEventListener("keydown", (event) => {
    const box = event.target.closest(".cellbox");
    if (box) return editKey(event, box);
    const cell = event.target.closest("[data-field]");
    const isKey = !isTyping(event);
    if (event.key === "Enter" && event.target.form?.id === "dataset-selection") {
      if (event.target.matches("input")) event.preventDefault(); // removes nothing
    } else if (event.key === "a" && isKey) {
      const link = document.querySelector("[data-add-example]");
      if (link) event.preventDefault();
      link?.click();
    } else if (cell) cellKey(event, cell);
    else if (event.key in MOVES && isKey && event.target.matches(OUTSIDE)) {
      if (!currentCell()) return;
      event.preventDefault();
      focusCell(currentCell());
    }
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-row-url]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    addRow(link);
  });

  const isTyping = (event) =>
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.target.closest(
      "input:not([type=checkbox]), textarea, select, button, [contenteditable]",
    );

  function editKey(event, box) {
    if (event.isComposing || event.keyCode === 229) return;
    const cell = box.closest("td");
    if (event.key === "Escape") {
      event.stopPropagation();
      const restored = close(box) ?? currentCell();
      if (restored) focusCell(restored);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      leave(box, cell, { opens: false });
    } else if (event.key === "Tab") {
      const other = neighbor(cell, 0, event.shiftKey ? -1 : 1);
      if (!other) return;
      event.preventDefault();
      leave(box, other, { opens: true });
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
    const { link } = next;
    if (link) {
      forgetNext();
      return addRow(link);
    }
    const row = document.getElementById(next.row);
    const cell = row && cellsOf(row).find((one) => one.dataset.field === next.field);
    const opens = next.opens && cell;
    next = null;
    if (opens) return edit(cell);
    typed = "";
    if (cell) focusCell(cell);
  }

  function forgetNext() {
    next = null;
    typed = "";
  }

  // A click elsewhere saves, as in a spreadsheet.
  document.addEventListener("focusout", (event) => {
    const box = event.target.closest?.(".cellbox");
    if (!box?.isConnected || saving || box.matches("[aria-invalid]")) return;
    if (isUnchanged(box)) close(box);
    else save(box);
  });

  function startTabbing() {
    const all = document.querySelectorAll("[data-field]:not(.editing)");
    for (const cell of all) if (!cell.hasAttribute("tabindex")) cell.tabIndex = -1;
    if (all.length && !currentCell()) all[0].tabIndex = 0;
  }

  document.addEventListener("htmx:after:swap", () => {
    startTabbing();
    const box = document.querySelector(".cellbox");
    if (saving && !saving.isConnected) {
      saving = null;
      if (box) forgetNext(); // the text was refused
      if (box) focusBox(box);
      else {
        if (next?.row === NEW_ROW)
          next.row = [...document.querySelectorAll("tr[data-cell-url]")].at(-1).id;
        goNext();
      }
    } else if (opening && !opening.isConnected && box) {
      opening = null;
      if (!next) {
        focusBox(box);
        typed = "";
      } else {
        close(box);
        goNext();
      } // another cell was picked meanwhile
    }
  });

  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    const isUnsaved = saving && ctx.request.form === saving.form;
    if (isUnsaved) {
      saving.readOnly = false;
      saving = null;
    }
    const isUnopened = opening && ctx.target === opening;
    if (isUnopened) {
      if (opening.matches("tr")) opening.remove();
      opening = null;
    }
    if (isUnsaved || isUnopened) forgetNext();
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
