// The page of a tool: marks what is edited, and tests the typed values.
(() => {
  "use strict";
  const form = document.getElementById("tool-form");
  const panes = document.getElementById("tool-panes");
  const pane = () => document.getElementById("tool-try");
  const callButton = () => pane().querySelector("[data-call]");

  // Without a script, the page sends the arguments with the form; here, htmx does that.
  form?.querySelector("input[name=preview]")?.remove();
  for (const one of pane().querySelectorAll("[form]"))
    for (const name of ["form", "formaction", "formenctype"]) one.removeAttribute(name);

  // Edited fields and groups are marked; the pane says that it uses unsaved values.
  const isEdited = (names, element) =>
    names.some((name) => {
      const found = form.elements.namedItem(name);
      const field = found instanceof RadioNodeList ? found[0] : found;
      return field && element.contains(field);
    });
  form?.addEventListener("form:unsaved", ({ detail: { isUnsaved, names } }) => {
    panes.toggleAttribute("data-unsaved", isUnsaved);
    for (const element of form.querySelectorAll(".group, .field")) {
      const isChanged = isEdited(names, element);
      element.classList.toggle("changed", isChanged);
      const place = element.matches(".group")
        ? element.querySelector(":scope > summary > h2")
        : element.querySelector("label, legend, .label:not(.sr)");
      const mark = place?.querySelector(":scope > .edited");
      if (isChanged && place && !mark && !element.matches(".group[open]")) {
        const added = document.createElement("span");
        added.className = "edited";
        added.textContent = gettext("edited");
        place.append(added);
      } else if (!isChanged || element.matches(".group[open]")) mark?.remove();
    }
  });

  // Groups with an error, and those that a link points into, are opened.
  function showField(id, line) {
    const field = document.getElementById(id);
    if (!field) return;
    show("1");
    for (
      let box = field.closest("details");
      box;
      box = box.parentElement.closest("details")
    )
      box.open = true;
    const shown = field.checkVisibility() ? field : field.closest(".field");
    shown.scrollIntoView({ block: "center" });
    field.focus();
    field.dispatchEvent(new CustomEvent("editor:line", { detail: line }));
  }

  // A description that is too short or too long is selected at the wrong time.
  const words = form?.querySelector("[data-words]");
  const description = form?.elements.description;
  function countWords() {
    const [few, many] = words.dataset.words.split(" ").map(Number);
    const count = (description.value.match(/\p{L}[\p{L}\p{N}'’-]*/gu) ?? []).length;
    const wide = [...description.value].filter((letter) => letter > "\u2e80").length;
    const size = Math.max(count, Math.round(wide / 2)); // Chinese has no spaces
    words.dataset.tone = size < few || size > many ? "need" : "";
    const text =
      size < few
        ? ngettext("%(count)s word, short", "%(count)s words, short", size)
        : size > many
          ? ngettext("%(count)s word, long", "%(count)s words, long", size)
          : ngettext("%(count)s word, good", "%(count)s words, good", size);
    words.textContent = interpolate(text, { count: size }, true);
    // The good range is in the middle of the bar; a mark shows the length.
    const [good, now] = words.parentElement.querySelectorAll(".lenbar rect");
    const share = (number) => `${Math.min(98, (100 * number) / (many + few))}%`;
    good.setAttribute("x", share(few));
    good.setAttribute("width", share(many - few));
    now.setAttribute("x", share(size));
  }
  if (words && description) {
    description.addEventListener("input", countWords);
    countWords();
  }

  // The arguments of the pane follow those of the form, and what declares them.
  const DECLARES = /^(args_schema|function$|connection$|query$)/;
  let timer = 0;
  function follow() {
    clearTimeout(timer);
    timer = setTimeout(refresh, 400);
  }
  function refresh() {
    pane().querySelector("[data-refresh]").dispatchEvent(new Event("tool:arguments"));
  }
  // A placeholder of the URL becomes an argument; the focus stays where it is.
  let pause = 0;
  let focused = null;
  function declarePlaceholders() {
    clearTimeout(pause);
    pause = setTimeout(() => {
      const rows = [...form.querySelectorAll(".schema-name input")];
      const known = new Set(["input", ...rows.map((row) => row.value)]);
      const placed = listPlaceholders();
      const names = [...placed].filter((name) => !known.has(name));
      const left = rows.filter(
        (row) => declared.has(row.value) && !placed.has(row.value),
      );
      for (const name of placed) declared.add(name);
      if (names.length === 0 || form.elements.args_schema) return;
      if (names.length === 1 && left.length === 1) {
        left[0].value = names[0]; // the placeholder was renamed
        left[0].dispatchEvent(new Event("input", { bubbles: true }));
        return;
      }
      focused = document.activeElement;
      requestSchema(`add:${names.join(",")}`);
    }, 600);
  }
  const url = form?.elements.url;
  const listPlaceholders = () =>
    new Set(
      [...(url?.value ?? "").matchAll(/\{([A-Za-z_]\w*)\}/g)].map((match) => match[1]),
    );
  const declared = listPlaceholders();
  url?.addEventListener("input", declarePlaceholders);
  // What was typed before this script had loaded, or is restored by the browser.
  addEventListener("pageshow", () => {
    if (url && url.value !== url.defaultValue) declarePlaceholders();
  });

  for (const name of ["input", "change"])
    form?.addEventListener(name, (event) => {
      if (DECLARES.test(event.target.name ?? "")) follow();
    });
  let schema = document.getElementById("tool-schema");
  document.addEventListener("htmx:after:swap", (event) => {
    const { target } = event.detail.ctx;
    const shown = document.getElementById("tool-schema");
    if (target?.id === "tool-schema" && shown !== schema) {
      schema = shown; // the event also comes if nothing was swapped
      follow();
      focused?.focus();
      focused = null;
    }
    if (target?.id === "tool-try") {
      showResult();
      sayCanceled();
    }
  });

  // The error of Python code is marked on its line, and the result is brought in view.
  function showResult() {
    clearInterval(clock);
    const result = pane().querySelector("[data-error-line]");
    const code = form?.elements.code;
    code?.dispatchEvent(
      new CustomEvent("editor:error", {
        detail: {
          line: Number(result?.dataset.errorLine) || 0,
          text: (result?.dataset.errorText ?? "").replace(/^Line \d+: /, ""),
        },
      }),
    );
    const news = pane().querySelector("#tool-result, #tool-preview, [role=alert]");
    if (isCalling) news?.scrollIntoView({ block: "nearest" });
    if (isCalling) pane().querySelector("[data-confirm]")?.focus();
    isCalling = false;
  }

  let clock = 0;
  let isCalling = false;
  let isCanceled = false;
  const isCall = (node) =>
    pane().contains(node) &&
    !node.matches("[data-refresh], [name=trial], [name=switch_to]");
  document.addEventListener("htmx:before:request", (event) => {
    if (!isCall(event.target)) return;
    isCalling = true;
    isCanceled = false;
    callButton().ariaDisabled = "true";
    sayCanceled();
    const began = Date.now();
    clearInterval(clock);
    clock = setInterval(() => {
      const place = pane().querySelector("[data-elapsed]");
      if (place) place.textContent = `${((Date.now() - began) / 1000).toFixed(1)} s`;
    }, 100);
  });

  // The server ends the call when its request is aborted, and lists it soon after.
  const STOPPING = 1000;
  function stopCall() {
    const sent = ".tool-try-form.htmx-request, [data-confirm].htmx-request";
    const calling = pane().querySelector(sent);
    if (!calling) return;
    htmx.trigger(calling, "htmx:abort");
    clearInterval(clock);
    isCalling = false;
    isCanceled = true;
    callButton().ariaDisabled = null;
    sayCanceled();
    callButton().focus();
    setTimeout(() => {
      if (isCanceled) refresh();
    }, STOPPING);
  }
  function sayCanceled() {
    const place = pane().querySelector("[data-canceled]");
    const word = isCanceled ? gettext("Canceled") : "";
    if (place.textContent !== word) place.textContent = word;
  }

  // One call at a time: the button waits for its result, or for Stop.
  addEventListener(
    "click",
    (event) => {
      if (!event.target.closest("[data-call][aria-disabled]")) return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  document.addEventListener("htmx:finally:request", (event) => {
    if (isCall(event.target)) callButton().ariaDisabled = null;
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-stop]")) stopCall();
    const view = event.target.closest(".views [data-view]");
    if (view) {
      event.preventDefault();
      show(view.dataset.view);
    }
    const example = event.target.closest("[data-example]");
    if (example) {
      example.closest("details").open = false;
      form.elements.code.dispatchEvent(
        new CustomEvent("editor:replace", { detail: example.dataset.example }),
      );
      declare(JSON.parse(example.dataset.arguments));
    }
    const link = event.target.closest("[data-show-field]");
    if (link) {
      event.preventDefault();
      showField(link.hash.slice(1), Number(link.dataset.line));
    }
    // An error offers to add an argument: the form's editor does that.
    const offer = event.target.closest("#tool-try [name=args_schema-do]");
    if (offer) {
      event.preventDefault();
      requestSchema(offer.value);
    }
  });
  function requestSchema(action) {
    const values = Object.fromEntries(
      [...new FormData(form)].filter(([name]) => /^(args_schema|code$)/.test(name)),
    );
    const isRead = action === "function";
    htmx.ajax("POST", form.dataset.schemaUrl + (isRead ? "?part=function" : ""), {
      target: "#tool-schema",
      swap: "outerHTML",
      values: { ...values, "args_schema-do": action },
    });
  }

  // The arguments are those of the function in the code, unless others are defined.
  let typing = 0;
  form?.elements.code?.addEventListener("input", () => {
    clearTimeout(typing);
    const shape = form.elements["args_schema-shape"].value;
    if (shape !== "text" && shape !== "function") return;
    typing = setTimeout(() => requestSchema("function"), 600);
  });

  // The arguments that an example needs replace those of the form.
  function declare(types) {
    const names = Object.keys(types);
    const rows = names.flatMap((name, number) => [
      [`args_schema-${number}-name`, name],
      [`args_schema-${number}-type`, types[name]],
      [`args_schema-${number}-required`, "on"],
    ]);
    htmx.ajax("POST", form.dataset.schemaUrl, {
      target: "#tool-schema",
      swap: "outerHTML",
      values: {
        "args_schema-shape": names.length > 0 ? "rows" : "text",
        "args_schema-count": names.length,
        ...Object.fromEntries(rows),
      },
    });
  }

  // On a phone one of the two panes is shown.
  function show(view) {
    panes.dataset.view = view;
    for (const one of document.querySelectorAll(".views [data-view]"))
      if (one.dataset.view === view) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
  }
  show(document.querySelector("#tool-result, #tool-try .errors") ? "2" : "1");
  if (document.getElementById("tool-result"))
    addEventListener("load", showResult, { once: true });

  // Arguments of a test stay when the tool is saved and that leads to its page.
  const KEPT = "tool-arguments";
  const argumentsOf = () => [
    ...pane().querySelectorAll("[name^=arg-]:not([type=file])"),
  ];
  form?.addEventListener("submit", () => {
    const typed = argumentsOf().map((one) => [
      one.name,
      one.value,
      one.checked ?? false,
    ]);
    const page = location.href.split("#")[0];
    const result = pane().querySelector("#tool-result")?.outerHTML;
    keep({ page, typed, result });
    form.addEventListener("formdata", sendArguments);
    setTimeout(() => form.removeEventListener("formdata", sendArguments));
  });
  function keep(typed) {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(typed));
    } catch {
      // A result that is too large for the browser is not kept.
      sessionStorage.setItem(KEPT, JSON.stringify({ ...typed, result: undefined }));
    }
  }
  // The server shows them again in a form that it refuses.
  function sendArguments({ formData }) {
    for (const [name, value] of new FormData(pane().querySelector("form")))
      if (/^(arg-|arguments)/.test(name) && typeof value === "string")
        formData.append(name, value);
  }
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
  const restored = kept.page === document.referrer ? kept.typed : [];
  for (const [name, value, checked] of restored) {
    const field = argumentsOf().find((one) => one.name === name);
    if (field?.matches("[type=checkbox]")) field.checked = checked;
    else if (field && !field.value) field.value = value;
  }
  const isRefused = Boolean(form?.querySelector("#part-mistakes"));
  if (isRefused && kept.page === document.referrer && kept.result)
    pane()
      .querySelector("#tool-trials")
      ?.insertAdjacentHTML("beforebegin", kept.result);
  sessionStorage.removeItem(KEPT);

  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      if (event.altKey || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      show("2");
      callButton().click();
    },
    true,
  );
})();
