// The agent page: saves the draft while typing and shows errors at their fields.
(() => {
  "use strict";
  const PAUSE = 800;
  const AGAIN = 5000;
  const KEPT_ALIVE = 60000;
  const form = document.getElementById("agent-form");
  if (!form) return;
  const save = form.dataset.save;
  let timer = 0;
  let stored = 0;
  let running = null;
  let failed = false;

  const state = () => document.getElementById("agent-state");
  // A later draft was saved elsewhere, or fields with errors keep their stored values.
  const hasConflict = () => Boolean(state()?.querySelector("[name=over]"));
  const isRefused = () =>
    hasConflict() || Boolean(state()?.querySelector("[data-not-saved]"));
  let changes = isRefused() ? 1 : 0;
  const say = (text) => {
    const place = state()?.querySelector("[data-saved]");
    if (place) place.textContent = text;
  };

  function changed(event) {
    if (event.target.matches("[data-filter]")) return;
    changes += 1;
    if (!save) return;
    clearTimeout(timer);
    timer = setTimeout(store, PAUSE);
  }

  // One save at a time: each sends the revision that the previous one returned.
  async function store() {
    clearTimeout(timer);
    if (!save) return true;
    if (running) {
      await running;
      return stored === changes ? true : store();
    }
    if (stored === changes) return true;
    running = send();
    const done = await running;
    running = null;
    return done && (stored === changes || store());
  }

  async function send() {
    const upto = changes;
    say(gettext("Saving"));
    let html = "";
    try {
      const answer = await fetch(save, {
        method: "POST",
        body: new FormData(form),
        headers: { "HX-Request": "true" },
      });
      if (answer.redirected)
        throw new Error(gettext("Not saved: sign in again in another tab. Retrying"));
      if (!answer.ok)
        throw new Error(
          interpolate(
            gettext("Not saved: the server answered with status %(status)s. Retrying"),
            { status: answer.status },
            true,
          ),
        );
      html = await answer.text();
      failed = false;
    } catch (error) {
      failed = true;
      say(
        error instanceof TypeError
          ? gettext("Not saved: the server does not respond. Retrying")
          : error.message,
      );
      clearTimeout(timer);
      timer = setTimeout(store, AGAIN);
      return false;
    }
    const before = state();
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const after = holder.content.querySelector("#agent-state");
    if (!after) return false;
    before.replaceWith(after);
    if (!isRefused()) stored = upto;
    mark();
    ask();
    return !isRefused();
  }

  // Show each error of the state at its field, and remove the previous ones.
  function mark() {
    const problems = new Map();
    for (const one of state()?.querySelectorAll("[data-mistake]") ?? []) {
      const name = one.dataset.mistake;
      problems.set(name, [...(problems.get(name) ?? []), one.textContent]);
    }
    for (const place of form.querySelectorAll("[id^=part-field-]")) {
      const name = place.id.slice("part-field-".length);
      place.querySelectorAll(".error").forEach((old) => old.remove());
      const help = place.querySelector(".help");
      if (help) help.hidden = problems.has(name);
      const input = place.querySelector("input, select, textarea");
      input?.removeAttribute("aria-invalid");
      for (const text of problems.get(name) ?? []) {
        const error = document.createElement("p");
        error.className = "error field-error";
        error.textContent = text;
        place.append(error);
        input?.setAttribute("aria-invalid", "true");
      }
      if (problems.has(name)) place.closest("details")?.setAttribute("open", "");
    }
    const whole = document.getElementById("agent-whole");
    const rest = problems.get("") ?? [];
    whole.hidden = rest.length === 0;
    whole.querySelector("span").textContent = rest.join(" ");
  }

  // Reload the test chat when the inputs of the draft change; typed text is kept.
  let typed = null;
  function ask() {
    const chat = document.getElementById("agent-test-form");
    const wanted = state()?.dataset.variables;
    if (!chat || wanted === undefined || chat.dataset.variables === wanted) return;
    typed = {
      values: new FormData(chat),
      name: document.activeElement?.form === chat ? document.activeElement.name : "",
    };
    const conversation = chat.elements.conversation_id.value;
    htmx.ajax("GET", `?try=chat&conversation=${encodeURIComponent(conversation)}`, {
      target: "#agent-try",
      swap: "outerHTML",
    });
  }
  function retype() {
    const chat = document.getElementById("agent-test-form");
    if (!typed || !chat) return;
    for (const [name, value] of typed.values) {
      const field = chat.elements[name];
      if (field && field.type === "textarea") field.value = value;
    }
    if (typed.name) chat.elements[typed.name]?.focus();
    typed = null;
  }

  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  // Enter saves like a pause; only the explicit button overwrites a newer draft.
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (save && button?.name !== "over" && !button?.hasAttribute("formaction")) {
      event.preventDefault();
      store();
      return;
    }
    clearTimeout(timer);
    stored = changes;
  });

  // A form that needs the draft says why it was not sent.
  function explain(waiting) {
    waiting.querySelector("[data-refused]")?.remove();
    if (!hasConflict()) return;
    const error = document.createElement("p");
    error.className = "note";
    error.role = "alert";
    Object.assign(error.dataset, { tone: "bad", refused: "" });
    error.textContent = gettext(
      "Your changes are not saved, because a later draft was saved. Load the later " +
        "draft or overwrite it first.",
    );
    waiting.prepend(error);
  }

  // A draft with errors is not published: the stored draft differs from the form.
  function wrong() {
    const first = form.querySelector("[aria-invalid=true], .field-error");
    if (!state()?.querySelector("[data-mistake]")) return false;
    show("1");
    (first ?? form).scrollIntoView({ block: "center" });
    first?.focus();
    return true;
  }

  // Running or publishing uses what is on the page, so save first.
  document.addEventListener(
    "submit",
    async (event) => {
      const waiting = event.target.closest("[data-after-save]");
      if (!waiting || waiting.dataset.saved === "yes") return;
      if (stored === changes && !(waiting.id === "agent-publish" && wrong())) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const button = event.submitter;
      const isStored = await store();
      explain(waiting);
      if (!isStored && isRefused() && !hasConflict()) wrong();
      if (!isStored || (waiting.id === "agent-publish" && wrong())) return;
      waiting.dataset.saved = "yes";
      waiting.requestSubmit(button);
      delete waiting.dataset.saved;
    },
    true,
  );
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) store();
  });
  addEventListener("beforeunload", (event) => {
    if (!save || stored === changes) return;
    const body = new FormData(form);
    const size = [...body].reduce(
      (sum, [name, value]) => sum + name.length + String(value).length * 3 + 100,
      0,
    );
    if (running || failed || isRefused() || size > KEPT_ALIVE) event.preventDefault();
    else
      fetch(save, {
        method: "POST",
        body,
        headers: { "HX-Request": "true" },
        keepalive: true,
      });
  });

  // Preselect the kind that suits the model until the user selects one.
  let touched = Boolean(save);
  form.addEventListener("change", (event) => {
    if (event.target.name === "kind") touched = true;
  });
  form.addEventListener("input", () => {
    const title = form.querySelector("[name=kind]:checked + b")?.textContent ?? "";
    form.querySelector("[data-kind-title]").textContent = title;
  });
  function suit() {
    const kind = form.querySelector("[data-suits]")?.dataset.suits;
    const radio =
      kind && form.querySelector(`input[name=kind][value="${CSS.escape(kind)}"]`);
    if (!touched && radio && !radio.checked) {
      radio.checked = true;
      form.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  // A model that the new provider does not have is replaced by its default model.
  let moved = false;
  form.addEventListener("change", (event) => {
    moved = moved || event.target.name === "provider";
  });
  function takeUsual() {
    const { model } = form.elements;
    const names = [...form.querySelectorAll("#agent-model-names option")].map(
      (option) => option.value,
    );
    const { usual } = form.querySelector("[data-suits]").dataset;
    const isKept = !moved || model.value === usual || names.includes(model.value);
    moved = false;
    if (isKept) return;
    model.value = usual || (names.length === 1 ? names[0] : "");
    model.dispatchEvent(new Event("change", { bubbles: true }));
  }

  document.addEventListener("click", (event) => {
    const start = event.target.closest("[data-start]");
    if (start) {
      event.preventDefault();
      start.closest("details").open = false;
      const area = form.elements.instructions;
      area.value = start.dataset.start;
      area.dispatchEvent(new CustomEvent("editor:replace"));
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }
    const view = event.target.closest(".views [data-view]");
    if (view) {
      event.preventDefault();
      show(view.dataset.view);
      toNewest();
    }
  });
  function show(view) {
    document.getElementById("agent-panes").dataset.view = view;
    document.querySelectorAll(".views [data-view]").forEach((one) => {
      if (one.dataset.view === view) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    });
  }
  if (new URLSearchParams(location.search).has("try")) show("2");
  else show("1");

  // Back and Forward change only the right pane: the form keeps its unsaved text.
  document.addEventListener("htmx:before:history:restore", (event) => {
    event.preventDefault();
    htmx.ajax("GET", event.detail.path, { target: "#agent-try", swap: "outerHTML" });
  });

  // The test chat: the newest message stays visible, the field keeps the focus.
  let wrote = false;
  document.addEventListener("htmx:before:request", (event) => {
    wrote = wrote || event.target.id === "agent-test-form";
  });
  function follow() {
    const box = document.querySelector("#agent-try [data-follow]");
    if (box && !("isLeft" in box.dataset)) box.scrollTop = box.scrollHeight;
  }
  // On a phone the page scrolls instead of the chat.
  function toNewest() {
    follow();
    const box = document.querySelector("#agent-try [data-follow]");
    if (box?.checkVisibility() && getComputedStyle(box).overflowY === "visible")
      window.scrollTo(0, document.documentElement.scrollHeight);
  }
  if (new URLSearchParams(location.search).has("try")) toNewest();
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target?.id === "agent-models") takeUsual();
    suit();
    retype();
    follow();
    const field = document.querySelector("#agent-test-form textarea[name=input]");
    if (wrote && field) {
      wrote = false;
      field.focus();
    }
  });
  follow();
})();
