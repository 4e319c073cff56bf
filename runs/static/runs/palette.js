// The palette (Ctrl+K): the search page as a dialog. Jumps (g, then a letter) and "?".
(() => {
  "use strict";
  // The frame of people who only chat has none, but has "?".
  const opener = document.querySelector("[data-palette]");
  const WAIT = 120;
  const MOST_ACTIONS = 8;
  const PAGE_ACTIONS = ":is(.head, .runs-head, .run-head) :is(a.btn, button, .menu a)";
  const SITE_ACTIONS = ".top .menu button";
  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  let dialog, input, list, status, request, timer, found;

  function build() {
    input = make("input", {
      type: "search",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "palette-list",
      "aria-autocomplete": "list",
      "aria-label": gettext("Search or jump to"),
      placeholder: gettext("Pages, actions, agents, tools and runs"),
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "200",
    });
    list = make("div", {
      id: "palette-list",
      role: "listbox",
      "aria-label": gettext("Results"),
    });
    status = make("p", { role: "status", class: "sr" });
    const label = make("label", { class: "find wide" });
    label.innerHTML =
      '<svg class="ico" aria-hidden="true"><use href="#i-search"/></svg>';
    label.append(input);
    dialog = make(
      "dialog",
      { id: "palette", "aria-label": gettext("Search") },
      label,
      list,
      status,
    );
    document.body.append(dialog);
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(load, WAIT);
    });
    input.addEventListener("keydown", press);
    list.addEventListener("pointermove", (event) => {
      const option = event.target.closest("[role=option]");
      if (option && option !== current()) select(option);
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("close", () => {
      request?.abort();
      clearTimeout(timer);
    });
  }

  function open() {
    if (document.querySelector("dialog[open]")) return;
    if (!dialog) build();
    for (const menu of document.querySelectorAll("details.menu[open]"))
      menu.open = false;
    input.value = "";
    dialog.showModal();
    input.focus();
    load();
  }

  async function load() {
    request?.abort();
    request = new AbortController();
    const text = input.value.trim();
    try {
      const answer = await fetch(`${opener.href}?${new URLSearchParams({ q: text })}`, {
        headers: { "HX-Request": "true" },
        signal: request.signal,
      });
      if (!answer.ok || answer.redirected) throw new Error(`Status ${answer.status}`);
      show(await answer.text(), text);
      found = text;
    } catch (error) {
      if (error.name === "AbortError") return;
      list.replaceChildren();
      status.textContent = gettext("The search failed. Reload the page.");
      status.className = "note";
    }
  }

  // As shown, for a button may have other words on a phone; a closed menu shows none.
  const wordsOf = ({ innerText, textContent, title }) =>
    (innerText.trim() || textContent.trim() || title).replace(/\s+/g, " ");
  const isOffered = (element) =>
    !element.disabled && !element.closest("[hidden], .phone-only") && wordsOf(element);

  // What the open page offers beside `results`, and with a text also the menus of all
  // pages.
  function pageActions(text, results) {
    const known = new Set(
      results.map((link) => `${link.href} ${link.querySelector(".clip").textContent}`),
    );
    const words = text.toLowerCase().split(/\s+/);
    const isNamed = ({ label }) =>
      words.every((word) => label.toLowerCase().includes(word));
    const places = text ? `${PAGE_ACTIONS}, ${SITE_ACTIONS}` : PAGE_ACTIONS;
    const found = [...document.querySelectorAll(places)]
      .filter(isOffered)
      .map((element) => {
        const menu = element.closest("details.menu")?.querySelector("summary");
        return { element, label: wordsOf(element), menu: menu ? wordsOf(menu) : "" };
      })
      .filter(({ element, label }) => !known.has(`${element.href} ${label}`))
      .filter(({ label, menu }) =>
        words.every((word) => `${menu} ${label}`.toLowerCase().includes(word)),
      )
      .sort((a, b) => isNamed(b) - isNamed(a)) // before those whose menu has the words
      .slice(0, MOST_ACTIONS);
    if (!found.length) return null;
    const items = found.map(({ element, label, menu }, place) => {
      const option = make("a", {
        id: `palette-action-${place}`,
        href: element.href || location.href,
      });
      const icon = element.querySelector("svg use")?.getAttribute("href") ?? "#i-right";
      option.innerHTML = '<svg class="ico" aria-hidden="true"><use/></svg>';
      option.querySelector("use").setAttribute("href", icon);
      option.append(make("span", { class: "clip" }, label));
      if (menu) option.append(make("span", { class: "clip small faint" }, menu));
      option.addEventListener("click", (event) => {
        event.preventDefault();
        dialog.close();
        element.click();
      });
      return make("li", {}, option);
    });
    const title = make(
      "h2",
      { class: "lab", id: "palette-page" },
      gettext("This page"),
    );
    return make(
      "section",
      { "aria-labelledby": title.id },
      title,
      make("ul", {}, ...items),
    );
  }

  // Links of the page are options here: the field keeps the focus.
  function show(html, text) {
    const part = new DOMParser().parseFromString(html, "text/html").body
      .firstElementChild;
    const actions = pageActions(text, [...part.querySelectorAll("a")]);
    const below = "section:not([aria-labelledby=search-pages])";
    if (actions) part.insertBefore(actions, part.querySelector(below));
    const count =
      Number(part.dataset.count) + (actions?.querySelectorAll("a").length ?? 0);
    for (const section of part.querySelectorAll("section"))
      section.setAttribute("role", "group");
    for (const plain of part.querySelectorAll("ul, li, h2"))
      plain.setAttribute("role", "presentation");
    for (const link of part.querySelectorAll("a")) {
      link.setAttribute("role", "option");
      link.setAttribute("aria-selected", "false");
      link.tabIndex = -1;
    }
    list.replaceChildren(...part.children);
    list.scrollTop = 0;
    status.className = "sr";
    status.textContent = interpolate(
      ngettext("%(count)s result", "%(count)s results", count),
      { count },
      true,
    );
    select(options()[0]);
  }

  const options = () => [...list.querySelectorAll("[role=option]")];
  const current = () => list.querySelector("[aria-selected=true]");
  function select(option) {
    current()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  function press(event) {
    if (event.isComposing) return;
    const all = options(),
      place = all.indexOf(current());
    const moves = {
      ArrowDown: () => (place + 1) % all.length,
      ArrowUp: () => (place - 1 + all.length) % all.length,
      PageDown: () => Math.min(place + 8, all.length - 1),
      PageUp: () => Math.max(place - 8, 0),
    };
    if (event.key in moves && all.length) {
      event.preventDefault();
      select(all[moves[event.key]()]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter(event.ctrlKey || event.metaKey);
    } else if (event.key === "Escape") {
      event.preventDefault(); // else the first press only empties the field
      dialog.close();
    }
  }

  // Enter right after the last letter goes to what that text finds.
  async function enter(isNewTab) {
    if (input.value.trim() !== found) {
      clearTimeout(timer);
      await load();
    }
    const link = current();
    if (!link) return;
    if (isNewTab) window.open(link.href, "_blank", "noopener");
    else link.click();
  }

  opener?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });

  // The shortcuts of this page, as the server lists them.
  async function showShortcuts() {
    const link = document.querySelector("[data-shortcuts]");
    if (!link) return; // signed out
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected) return;
    document.getElementById("search-shortcuts")?.remove();
    document.body.insertAdjacentHTML("beforeend", await answer.text());
    document.getElementById("search-shortcuts").showModal();
  }
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-shortcuts]")) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showShortcuts();
  });

  const isTyping = (event) =>
    event.target.closest("input, textarea, select, [contenteditable]");
  const JUMP_WAIT = 1500;
  let jumps = 0;
  const keyOf = (event) => event.key.toLowerCase();
  document.addEventListener(
    "keydown",
    (event) => {
      const isCtrl = (event.ctrlKey || event.metaKey) && !event.altKey;
      if (opener && isCtrl && keyOf(event) === "k") {
        event.preventDefault();
        if (dialog?.open) dialog.close();
        else open();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (document.querySelector("dialog[open]")) return;
      if (isTyping(event)) return;
      if (event.timeStamp - jumps < JUMP_WAIT && jumps) {
        jumps = 0;
        const target = document.querySelector(
          `[data-jump="${CSS.escape(keyOf(event))}"]`,
        );
        if (!target) return;
        event.preventDefault();
        event.stopPropagation(); // the letter may mean something on this page
        if (target.matches("a")) target.click();
        else (target.querySelector("a, button") ?? target).focus();
      } else if (event.key === "g") {
        jumps = event.timeStamp;
      } else if (event.key === "?") {
        event.preventDefault();
        event.stopPropagation();
        showShortcuts();
      }
    },
    true,
  );
  // The bubbling handlers of a page come first: "/" belongs to its own search.
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !opener || isTyping(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" && !document.querySelector("dialog[open]"))
      document.querySelector("[data-new]")?.click();
    if (event.key === "c" && !document.querySelector("dialog[open]"))
      document.querySelector("[data-copy-key]")?.click();
    if (event.key !== "/") return;
    event.preventDefault();
    open();
  });
})();
