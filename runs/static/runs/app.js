// The one script of the pages: times in the viewer's zone, "/" to search, copying, theme.
(() => {
  "use strict";
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "medium" });

  function ago(at) {
    const seconds = (Date.now() - at) / 1000;
    const size = Math.abs(seconds);
    for (const [limit, unit, word] of [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [seconds < 0 ? Infinity : 2592000, 86400, "d"]]) {
      if (size < limit) {
        const text = `${Math.floor(size / unit)} ${word}`;
        if (seconds >= 0) return `${text} ago`;
        const [smaller, ofIt] = { h: [60, "min"], d: [3600, "h"] }[word] ?? [unit, ""];
        const rest = size < 1209600 ? Math.floor((size % unit) / smaller) : 0;
        return rest ? `in ${text} ${rest} ${ofIt}` : `in ${text}`;
      }
    }
    return day.format(at);
  }

  // As `lasting` of the server: a wait is one length wherever it stands.
  function lasting(at) {
    const seconds = Math.max(0, Math.floor((Date.now() - at) / 1000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} min`;
    const minutes = Math.round(seconds / 60);
    return seconds < 86400 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(seconds / 86400)} d`;
  }

  function say(time) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) return;
    const style = time.dataset.style || "day";
    const ways = {
      ago, past: () => ago(Math.min(at, Date.now())), due: () => (at > Date.now() ? ago(at) : `due ${ago(at)}`),
      for: () => lasting(at), time: () => clock.format(at),
    };
    const text = (ways[style] ?? day.format.bind(day))(at);
    if (time.textContent !== text) time.textContent = text;
    if (!time.dataset.said) {
      time.title = exact.format(at);
      time.dataset.said = "1";
    }
  }

  const inZone = (title) => { title.textContent = title.textContent.replace(/^[\d:]+ UTC/, clock.format(new Date(title.dataset.clock))); };
  const sayAll = (root) => {
    root.querySelectorAll("time[datetime]").forEach(say);
    root.querySelectorAll("title[data-clock]").forEach(inZone);
  };
  const found = (list) => list.forEach((change) => change.addedNodes.forEach((node) => {
    if (node.nodeType !== 1) return;
    if (node.matches("time[datetime]")) say(node);
    sayAll(node);
  }));

  sayAll(document);
  new MutationObserver(found).observe(document.body, { childList: true, subtree: true });
  // Seconds tick: the last sign of life must not age in jumps.
  setInterval(() => {
    for (const time of document.querySelectorAll("time:is([data-style=ago], [data-style=past], [data-style=due], [data-style=for])")) {
      if (time.dataset.style === "for" || Math.abs(Date.now() - new Date(time.dateTime)) < 120_000) say(time);
    }
  }, 1000);
  setInterval(() => sayAll(document), 10_000);

  // A part that was asked for without a session: who clicked goes to sign in, who reads
  // goes on reading and is told.
  document.addEventListener("htmx:before:response", (event) => {
    const ctx = event.detail.ctx, raw = ctx.response.raw;
    if (!raw.redirected || new URL(raw.url).pathname !== "/sign-in/") return;
    event.preventDefault();
    if (["click", "submit"].includes(ctx.sourceEvent?.type)) location.assign(`/sign-in/?next=${encodeURIComponent(location.pathname + location.search)}`);
    else document.dispatchEvent(new Event("session:lost"));
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      closeMenus(null);
      if (!event.target.matches("input[type=search]")) return;
      event.preventDefault(); // what was searched for stays
      event.target.blur();
    }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const searches = [...document.querySelectorAll("[data-first-search], input[type=search]")].filter((one) => one.checkVisibility());
    const search = searches.find((one) => one.matches("[data-first-search]")) ?? searches[0];
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  // A tab in the background holds no stream: a browser opens six to one host.
  document.addEventListener("htmx:before:request", (event) => {
    if (document.hidden && event.target.hasAttribute("hx-sse:connect")) event.preventDefault();
  });

  function closeMenus(but) {
    document.querySelectorAll("details.menu[open]").forEach((menu) => { if (menu !== but) menu.open = false; });
  }

  async function textFor(button) {
    const address = button.dataset.copyUrl;
    if (!address) {
      const source = document.querySelector(button.dataset.copy);
      return asPlain(source ? (source.dataset.raw || source.value || source.innerText) : "");
    }
    const answer = await fetch(address);
    if (!answer.ok || answer.redirected) throw new Error(`The text is not there: ${answer.status}`);
    return asPlain(await answer.text());
  }
  const asPlain = (text) => new Blob([text], { type: "text/plain" });

  document.addEventListener("click", async (event) => {
    closeMenus(event.target.closest("details.menu"));
    const button = event.target.closest("[data-copy], [data-copy-url]");
    if (!button) return;
    const word = button.querySelector("[data-word]") || button;
    const before = word.textContent;
    try {
      // Given before it is there: a browser lets pages copy only while a click lasts.
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": textFor(button) })]);
      word.textContent = "Copied";
    } catch {
      word.textContent = "Select and copy it by hand";
    }
    setTimeout(() => { word.textContent = before; }, 1600);
  });

  // Tabs that do not fit are scrolled: the chosen one is in sight, beside what fades.
  const FADE = 32;
  function showChosenTab(where) {
    for (const row of where.querySelectorAll(".tabs")) {
      const tab = row.querySelector("[aria-current]")?.getBoundingClientRect(), box = row.getBoundingClientRect();
      if (tab && (tab.left < box.left + FADE || tab.right > box.right - FADE)) row.scrollLeft += (tab.left + tab.right - box.left - box.right) / 2;
    }
  }
  showChosenTab(document);
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target?.id === "run-detail") showChosenTab(document.getElementById("run-detail") ?? document);
  });

  // What scrolls can be reached by the keyboard.
  function reachScrolled(where) {
    for (const box of where.querySelectorAll("pre.code, #run-detail-scroll")) if (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  reachScrolled(document);
  document.addEventListener("toggle", (event) => reachScrolled(event.target), true);
  document.addEventListener("htmx:after:swap", () => reachScrolled(document));
  addEventListener("resize", () => reachScrolled(document));

  document.addEventListener("input", (event) => {
    const search = event.target.closest("[data-filter]");
    if (!search) return;
    const word = search.value.trim().toLowerCase();
    const rows = [...document.querySelectorAll(search.dataset.filter)];
    for (const row of rows) row.hidden = !row.dataset.find.toLowerCase().includes(word);
    document.querySelector(search.dataset.none).hidden = rows.some((row) => !row.hidden);
  });

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-theme-form]");
    if (!form || !event.submitter) return;
    event.preventDefault();
    const body = new FormData(form, event.submitter);
    const theme = event.submitter.value;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    form.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", String(one === event.submitter)));
    closeMenus(null);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });
})();
