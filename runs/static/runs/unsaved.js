// Larger forms: unsaved changes are named, leaving asks, and Ctrl+S saves.
(() => {
  "use strict";
  const NAMED = 3;
  const NOT_CONTENT = new Set(["csrfmiddlewaretoken", "seen"]);
  const states = new Map();

  function contentOf(form) {
    const content = new Map();
    for (const [name, value] of new FormData(form)) {
      if (NOT_CONTENT.has(name)) continue;
      const text = typeof value === "string" ? value : `${value.name} ${value.size}`;
      content.set(name, [...(content.get(name) ?? []), text]);
    }
    return new Map([...content].map(([name, texts]) => [name, JSON.stringify(texts)]));
  }

  function changedNames(form) {
    const { before, refused } = states.get(form),
      now = contentOf(form);
    const changed = [...before.keys(), ...now.keys()].filter(
      (name) => before.get(name) !== now.get(name),
    );
    return [...new Set([...refused, ...changed])];
  }

  function labelOf(form, name) {
    const found = form.elements.namedItem(name);
    const isGroup = found instanceof RadioNodeList;
    const input = isGroup ? found[0] : found;
    const isPart = isGroup || input?.closest(".schema");
    const field = input?.closest(isPart ? ".field, fieldset" : ".field, label");
    const label = field?.querySelector("label, legend, .label") ?? field;
    return label?.firstChild?.nodeValue?.trim() || label?.innerText?.trim() || "";
  }

  const isUnsaved = (form) =>
    form.isConnected &&
    !states.get(form).isLeaving &&
    (states.get(form).isRefused || changedNames(form).length > 0);

  function showState(form) {
    form.dispatchEvent(
      new CustomEvent("form:unsaved", {
        detail: { isUnsaved: isUnsaved(form), names: changedNames(form) },
      }),
    );
    const place = form.querySelector("[data-unsaved]");
    if (!place) return;
    const names = [
      ...new Set(changedNames(form).map((name) => labelOf(form, name))),
    ].filter(Boolean);
    const text =
      names.length > 0 && names.length <= NAMED
        ? interpolate(
            gettext("Unsaved changes: %(fields)s"),
            { fields: names.join(", ") },
            true,
          )
        : gettext("Unsaved changes");
    place.hidden = !isUnsaved(form);
    const words = place.querySelector("span");
    if (words.textContent !== text) words.textContent = text;
  }

  // Scripts that set initial values have run by then.
  document.addEventListener("DOMContentLoaded", () => {
    for (const form of document.querySelectorAll("form[data-guard]")) {
      const isRefused =
        form.querySelector("#part-mistakes") !== null || "unsavedDraft" in form.dataset;
      // The server names what differs from the stored values in a form that it refused.
      const refused = form.dataset.changed?.split(" ").filter(Boolean) ?? [];
      const before = contentOf(form);
      states.set(form, { before, refused, isRefused, isLeaving: false });
      showState(form);
    }
  });

  for (const name of ["input", "change", "htmx:after:swap"])
    document.addEventListener(name, () => states.forEach((_, form) => showState(form)));

  addEventListener("submit", (event) => {
    const state = states.get(event.target);
    if (state && !event.defaultPrevented) state.isLeaving = true;
  });
  addEventListener("pageshow", () =>
    states.forEach((state) => {
      state.isLeaving = false;
    }),
  );
  addEventListener("beforeunload", (event) => {
    if ([...states.keys()].some(isUnsaved)) event.preventDefault();
  });

  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
      if (event.altKey || event.shiftKey) return;
      const forms = [...document.querySelectorAll("form[data-guard], form[data-save]")];
      const focused = document.activeElement?.closest("form");
      const form = forms.find((one) => one === focused) ?? forms[0];
      if (!form) return;
      event.preventDefault();
      const button =
        form.querySelector("button[name=_continue]") ??
        form.querySelector(".savebar .btn.primary");
      form.requestSubmit(button);
    },
    true,
  );
})();
