// A text field that offers the options of its datalist with what is known of each.
(() => {
  "use strict";
  const MOST = 60;
  const make = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      element.setAttribute(key, value);
    return element;
  };

  function mount(input) {
    const source = input.getAttribute("list");
    const id = `${input.id}-options`;
    const frame = make("div", { class: "combo" });
    const popup = make("div", { class: "combo-popup", hidden: "" });
    const list = make("div", {
      role: "listbox",
      id,
      "aria-label": input.labels[0].firstChild.textContent.trim(),
    });
    const rest = make("p", { class: "small muted", role: "status" });
    popup.append(list, rest);
    input.removeAttribute("list");
    input.before(frame);
    frame.append(input, popup);
    for (const [key, value] of Object.entries({
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": id,
    }))
      input.setAttribute(key, value);

    const options = () => [...list.children];
    const current = () => list.querySelector("[aria-selected=true]");

    function select(option) {
      current()?.setAttribute("aria-selected", "false");
      option?.setAttribute("aria-selected", "true");
      if (option) input.setAttribute("aria-activedescendant", option.id);
      else input.removeAttribute("aria-activedescendant");
      option?.scrollIntoView({ block: "nearest" });
    }

    function build(option, place) {
      const row = make("div", {
        role: "option",
        id: `${id}-${place}`,
        "aria-selected": "false",
      });
      const name = document.createElement("b");
      name.textContent = option.value;
      row.append(name);
      if (option.label !== option.value) {
        const facts = document.createElement("small");
        facts.textContent = option.label;
        row.append(" ", facts);
      }
      row.dataset.value = option.value;
      return row;
    }

    // All options at first; once a person types, those that have the text.
    function open(word = "") {
      const all = [...(document.getElementById(source)?.options ?? [])];
      const found = all.filter((one) =>
        one.value.toLowerCase().includes(word.trim().toLowerCase()),
      );
      const own = found.findIndex((one) => one.value === input.value);
      const from = own >= MOST ? own - MOST / 2 : 0;
      list.replaceChildren(...found.slice(from, from + MOST).map(build));
      rest.hidden = found.length > 0 && found.length <= MOST;
      rest.textContent = interpolate(
        found.length
          ? gettext("%(shown)s of %(count)s. Type to find the others.")
          : gettext("Not listed by the provider. You can use it anyway."),
        { shown: list.children.length, count: found.length },
        true,
      );
      popup.hidden = all.length === 0;
      input.setAttribute("aria-expanded", String(!popup.hidden));
      select(options().find((one) => one.dataset.value === input.value));
    }

    function close() {
      popup.hidden = true;
      input.setAttribute("aria-expanded", "false");
      select(null);
    }

    function take(option) {
      input.value = option.dataset.value;
      close();
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }

    function move(event) {
      const all = options();
      const place = all.indexOf(current());
      const next = {
        ArrowDown: (place + 1) % all.length,
        ArrowUp: (place < 0 ? all.length : place + all.length) - 1,
        PageDown: Math.min(place + 8, all.length - 1),
        PageUp: Math.max(place - 8, 0),
      }[event.key];
      if (next === undefined || !all.length) return;
      event.preventDefault();
      select(all[next % all.length]);
    }

    input.addEventListener("keydown", (event) => {
      if (event.isComposing || event.ctrlKey || event.metaKey) return;
      if (popup.hidden) {
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        event.preventDefault();
        open();
      } else if (event.key === "Enter" && current()) {
        event.preventDefault();
        take(current());
      } else if (event.key === "Escape") {
        event.preventDefault();
        close();
      } else move(event);
    });
    input.addEventListener("input", () => open(input.value));
    input.addEventListener("click", () => (popup.hidden ? open() : close()));
    input.addEventListener("blur", close);
    // The field keeps the focus, so that a press does not close the list first.
    popup.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) take(option);
    });
  }

  document.querySelectorAll("input[list][data-combobox]").forEach(mount);
})();
