// What is typed and not sent stays in the tab, for the page on which it was typed.
(() => {
  "use strict";
  const DRAFT = "textarea[data-draft]";
  // A page that answers a form has another address: `data-draft` is that of its page.
  const keyOf = (field) =>
    `draft ${field.dataset.draft || location.pathname} ${field.name}`;

  function restore() {
    for (const field of document.querySelectorAll(DRAFT)) {
      const kept = sessionStorage.getItem(keyOf(field));
      if (!kept || field.value) continue;
      field.value = kept;
      const fold = field.closest("details");
      if (fold) fold.open = true;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
  document.addEventListener("input", ({ target }) => {
    // Text typed after sending is a draft of the next page.
    if (!target.matches?.(DRAFT) || target.form?.matches("[data-sent]")) return;
    if (target.value.trim()) sessionStorage.setItem(keyOf(target), target.value);
    else sessionStorage.removeItem(keyOf(target));
  });
  document.addEventListener("submit", ({ target }) => {
    for (const field of target.querySelectorAll(DRAFT))
      sessionStorage.removeItem(keyOf(field));
  });
  document.addEventListener("htmx:after:swap", restore);
  restore();
})();
