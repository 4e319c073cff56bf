// The list of tools: select all, a range with Shift, and filters that apply at once.
(() => {
  "use strict";
  const form = document.getElementById("tool-choices");
  const boxes = [...(form?.querySelectorAll("td.sel input") ?? [])];
  const all = form?.querySelector("[data-all]");
  let last = null;

  function showAll() {
    const count = boxes.filter((box) => box.checked).length;
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  }

  all?.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    showAll();
  });
  for (const box of boxes)
    box.addEventListener("click", (event) => {
      const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort(
        (a, b) => a - b,
      );
      if (event.shiftKey && from >= 0)
        for (const one of boxes.slice(from, to + 1)) one.checked = box.checked;
      last = box;
      showAll();
    });
  form?.addEventListener("reset", () => setTimeout(showAll));
  addEventListener("pageshow", () => all && showAll());
})();
