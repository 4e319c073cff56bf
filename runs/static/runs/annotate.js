// Scoring with one hand: digits, letters of the labels, and a key for each action.
// Letters act outside of fields only; inside one, Ctrl Enter submits and Esc leaves it.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const form = () => find("[data-annotate]");

  const isField = (node) =>
    node.closest(
      "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])",
    );

  document.addEventListener("keydown", (event) => {
    if (!form() || event.isComposing || event.keyCode === 229 || event.altKey) return;
    const isSubmit = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (isSubmit && !event.repeat) {
      event.preventDefault();
      return form().requestSubmit();
    }
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (isField(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (act(event)) event.preventDefault();
  });

  function act(event) {
    const key = event.key.toLowerCase();
    const mark = form().querySelector(`[name=mark][value="${CSS.escape(key)}"]`);
    if (mark) return check(mark, true);
    const label = [...form().querySelectorAll("[data-key]")].find(
      (one) => one.dataset.key === key,
    );
    if (label) {
      const box = label.closest("label").querySelector("input");
      return check(box, !box.checked);
    }
    if (event.repeat) return false;
    if (key === "enter") {
      if (event.target.closest("a, button, summary")) return false;
      form().requestSubmit();
      return true;
    }
    const actions = {
      c: () => find("#id_comment")?.focus(),
      e: correct,
      s: () => find("[data-skip]")?.requestSubmit(),
      z: () => find("[data-undo]")?.requestSubmit(),
    };
    if (!actions[key]) return false;
    actions[key]();
    return true;
  }

  function correct() {
    const text = find("#queue-correct [value=text]");
    if (text) text.checked = true;
    find("[data-correction]")?.focus();
  }

  function check(box, isOn) {
    box.checked = isOn;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }

  // A corrected answer is meant for the dataset; who does not want that clears the box.
  document.addEventListener("input", (event) => {
    const box = find("[data-adds]");
    if (!event.target.matches("[data-correction]") || !box || box.dataset.touched)
      return;
    box.checked =
      box.defaultChecked || event.target.value !== event.target.defaultValue;
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-adds]")) event.target.dataset.touched = "1";
  });

  // Each form is sent once, however often its key is pressed.
  let isSent = false;
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-annotate], [data-skip], [data-undo]")) return;
    if (isSent) event.preventDefault();
    isSent = true;
  });
  addEventListener("pageshow", () => {
    isSent = false;
  });
})();
