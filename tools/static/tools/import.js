// The operations of an OpenAPI document: filters and selects without a request.
(() => {
  "use strict";
  const form = document.getElementById("openapi-choice");
  if (!form) return;
  const query = form.elements.namedItem("q");
  const tag = form.elements.namedItem("tag");
  const apply = form.querySelector("[name=filter]");
  const rows = [...form.querySelectorAll("tr[data-find]")];
  const boxOf = (row) => row.querySelector("[name=operation]");

  function filter() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows)
      row.hidden = !(
        words.every((word) => row.dataset.find.includes(word)) &&
        (!tag?.value || row.dataset.tags.split("\n").includes(tag.value))
      );
  }

  function count() {
    const selected = rows.filter((row) => boxOf(row).checked).length;
    form.querySelector("[data-selected]").textContent = String(selected);
  }

  apply.hidden = true;
  form.addEventListener("input", () => {
    filter();
    count();
  });
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && !["filter", "mark"].includes(button.name)) return;
    event.preventDefault();
    filter();
    if (button?.name === "mark")
      for (const row of rows) {
        const box = boxOf(row);
        if (button.value === "none") box.checked = false;
        else if (!row.hidden && !box.disabled) box.checked = true;
      }
    count();
  });
  filter();
  count();
})();
