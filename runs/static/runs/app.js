// The script of all pages: times in the viewer's zone, "/" to search, copying, theme.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const language = document.documentElement.lang || "en";
  const formatter = (options) =>
    new Intl.DateTimeFormat(language, { hourCycle: "h23", ...options });
  const DATE = { year: "numeric", month: "short", day: "numeric" };
  const CLOCK = { hour: "2-digit", minute: "2-digit" };
  const clock = formatter(CLOCK);
  const date = formatter(DATE);
  const day = formatter({ ...DATE, ...CLOCK });
  const exact = formatter({ ...DATE, ...CLOCK, second: "2-digit" });
  const text = (message, values) => interpolate(message, values, true);

  // The server divides charts and filters into days of this zone.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`time_zone=${zone}`))
    // biome-ignore lint/suspicious/noDocumentCookie: Firefox has had the other way only since 2025
    document.cookie = `time_zone=${zone}; path=/; max-age=31536000; samesite=lax`;

  // As `format_relative_time` of the server.
  const PAST = {
    s: gettext("%(count)s s ago"),
    min: gettext("%(count)s min ago"),
    h: gettext("%(count)s h ago"),
    d: gettext("%(count)s d ago"),
  };
  const FUTURE = {
    s: gettext("in %(count)s s"),
    min: gettext("in %(count)s min"),
    h: gettext("in %(count)s h"),
    d: gettext("in %(count)s d"),
  };
  const EXACT_FUTURE = {
    h: [60, gettext("in %(count)s h %(rest)s min")],
    d: [3600, gettext("in %(count)s d %(rest)s h")],
  };
  const UNITS = [
    ["s", 60, 1],
    ["min", 3600, 60],
    ["h", 86400, 3600],
    ["d", Infinity, 86400],
  ];
  const DATE_AFTER = 2592000,
    HOURS_OMITTED_AFTER = 1209600;

  function ago(at) {
    const seconds = (Date.now() - at) / 1000,
      size = Math.abs(seconds);
    if (seconds >= DATE_AFTER) return date.format(at);
    const [unit, , length] = UNITS.find(([, limit]) => size < limit),
      count = Math.floor(size / length);
    if (seconds >= 0) return text(PAST[unit], { count });
    const [smaller, both] = EXACT_FUTURE[unit] ?? [];
    const rest =
      both && size < HOURS_OMITTED_AFTER ? Math.floor((size % length) / smaller) : 0;
    return rest ? text(both, { count, rest }) : text(FUTURE[unit], { count });
  }

  // As `lasting` of the server.
  function lasting(at) {
    const seconds = Math.max(0, Math.floor((Date.now() - at) / 1000)),
      minutes = Math.round(seconds / 60);
    if (seconds < 60) return text(gettext("%(value)s s"), { value: seconds });
    if (seconds < 3600)
      return text(gettext("%(clock)s min"), {
        clock: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`,
      });
    if (seconds < 86400)
      return text(gettext("%(hours)s h %(minutes)s min"), {
        hours: Math.floor(minutes / 60),
        minutes: minutes % 60,
      });
    return text(gettext("%(value)s d"), { value: Math.floor(seconds / 86400) });
  }

  function say(time) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    const style = time.dataset.style || "day";
    const ways = {
      ago,
      past: () => ago(Math.min(at, Date.now())),
      due: () =>
        at > Date.now() ? ago(at) : text(gettext("due %(time)s"), { time: ago(at) }),
      for: () => lasting(at),
      time: () => clock.format(at),
    };
    const words = (ways[style] ?? day.format.bind(day))(at);
    if (time.textContent !== words) time.textContent = words;
    if (!time.dataset.said) {
      time.title = exact.format(at);
      time.dataset.said = "1";
    }
  }

  const inZone = (title) => {
    title.textContent = title.textContent.replace(
      /^[\d:]+ UTC/,
      clock.format(new Date(title.dataset.clock)),
    );
  };
  const sayAll = (root) => {
    root.querySelectorAll("time[datetime]").forEach(say);
    root.querySelectorAll("title[data-clock]").forEach(inZone);
  };
  const found = (list) =>
    list.forEach((change) =>
      change.addedNodes.forEach((node) => {
        if (node.nodeType !== 1) return;
        if (node.matches("time[datetime]")) say(node);
        sayAll(node);
        offerCopies(node);
      }),
    );

  // Each code block of a text has a button that copies it.
  function offerCopies(root) {
    for (const code of root.querySelectorAll(".prose pre > code:only-child")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy-code";
      button.ariaLabel = button.title = gettext("Copy code");
      button.innerHTML =
        '<svg class="ico" aria-hidden="true"><use href="#i-copy"/></svg>';
      code.after(button);
    }
  }
  async function copyCode(button) {
    try {
      await navigator.clipboard.writeText(button.previousElementSibling.innerText);
      button.dataset.done = "";
      button.title = gettext("Copied");
    } catch {
      button.title = gettext("Copy failed");
    }
    setTimeout(() => {
      delete button.dataset.done;
      button.title = gettext("Copy code");
    }, 1600);
  }

  sayAll(document);
  offerCopies(document);
  new MutationObserver(found).observe(document.body, {
    childList: true,
    subtree: true,
  });
  // Every second: the last heartbeat must not age in jumps.
  setInterval(() => {
    for (const time of document.querySelectorAll(
      "time:is([data-style=ago], [data-style=past], [data-style=due], [data-style=for])",
    )) {
      if (
        time.dataset.style === "for" ||
        Math.abs(Date.now() - new Date(time.dateTime)) < 120_000
      )
        say(time);
    }
  }, 1000);
  setInterval(() => sayAll(document), 10_000);

  // Live updates were interrupted, or refused after sign-out; they resume by themselves.
  // A part that loads does not prove that the stream works: each has its own state.
  const SHORT_MS = 1000; // a server that restarts is away for less
  const lost = { stream: "", part: "" };
  let failedAt = 0;
  let isLeaving = false;
  function setLost(source, when) {
    lost[source] = when;
    showLost(lost.stream || lost.part);
  }
  function showLost(when) {
    const note = document.getElementById("part-lost");
    if (!note || (note.dataset.when ?? "") === when) return;
    note.dataset.when = when;
    const template = document.querySelector(`#part-toasts [data-lost="${when}"]`);
    note.replaceChildren(template?.content.cloneNode(true) ?? "");
  }
  function failed(status) {
    if ([401, 403, 404].includes(status)) return setLost("stream", "gone");
    failedAt ||= Date.now();
    if (Date.now() - failedAt > SHORT_MS) setLost("stream", "away");
  }
  document.addEventListener("htmx:sse:error", (event) => failed(event.detail.status));
  // The first connection failed: only reconnections are errors of the stream.
  for (const name of ["htmx:error", "htmx:response:error"])
    document.addEventListener(name, (event) => {
      if (event.target.hasAttribute?.("hx-sse:connect"))
        failed(event.detail.ctx?.response?.status);
    });
  document.addEventListener("htmx:sse:after:connection", () => {
    failedAt = 0;
    lost.part = ""; // a stream needs a session, too
    setLost("stream", "");
  });

  // A part was requested without a session: a choice leads to sign-in; what loads by
  // itself, or while a person types, leaves the page as it is.
  const isSignIn = (raw) => raw.redirected && new URL(raw.url).pathname === "/sign-in/";
  document.addEventListener("htmx:before:response", (event) => {
    const ctx = event.detail.ctx;
    if (!isSignIn(ctx.response.raw)) return;
    event.preventDefault();
    if (!["click", "submit", "change"].includes(ctx.sourceEvent?.type))
      return setLost("part", "gone");
    // One choice can load several parts.
    if (!isLeaving)
      location.assign(
        `/sign-in/?next=${encodeURIComponent(location.pathname + location.search)}`,
      );
    isLeaving = true;
  });
  addEventListener("pageshow", () => {
    isLeaving = false;
  });
  document.addEventListener("htmx:after:request", (event) => {
    const raw = event.detail.ctx.response?.raw;
    if (raw?.ok && !isSignIn(raw)) setLost("part", "");
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = document.activeElement?.closest("details.menu[open]");
      closeMenus(null);
      menu?.querySelector("summary").focus();
      if (event.isComposing || event.defaultPrevented) return;
      if (!event.target.matches("input[type=search], [enterkeyhint=send]")) return;
      event.preventDefault(); // keeps the text of the search
      event.target.blur();
    }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const searches = [
      ...document.querySelectorAll("[data-first-search], input[type=search]"),
    ].filter((one) => one.checkVisibility());
    const search =
      searches.find((one) => one.matches("[data-first-search]")) ?? searches[0];
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  // Enter sends a message, Shift+Enter starts a new line. While an input method composes
  // text, Enter belongs to it; Safari says so only by the key code.
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (
      event.key !== "Enter" ||
      event.shiftKey ||
      !field.matches("[enterkeyhint=send]")
    )
      return;
    if (event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!event.repeat && field.value.trim()) field.form.requestSubmit();
  });
  // A message is sent once, even if Enter is pressed again before the answer.
  // Until then it has `data-sent`.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.querySelector("[enterkeyhint=send]") || event.defaultPrevented) return;
    if ("sent" in form.dataset) event.preventDefault();
    form.dataset.sent = "";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]"))
      delete form.dataset.sent;
  });

  // Drafts are not for the next person who signs in here.
  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("action") === "/sign-out/") sessionStorage.clear();
  });

  // Background tabs open no stream: a browser allows six connections to one host.
  document.addEventListener("htmx:before:request", (event) => {
    if (document.hidden && event.target.hasAttribute("hx-sse:connect"))
      event.preventDefault();
  });

  function closeMenus(but) {
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      if (menu !== but) menu.open = false;
    });
  }

  async function textFor(button) {
    const address = button.dataset.copyUrl;
    if (!address) {
      const source = document.querySelector(button.dataset.copy);
      return asPlain(
        source ? source.dataset.raw || source.value || source.innerText : "",
      );
    }
    const answer = await fetch(address);
    if (!answer.ok || answer.redirected) throw new Error(`Status ${answer.status}`);
    return asPlain(await answer.text());
  }
  const asPlain = (text) => new Blob([text], { type: "text/plain" });

  document.addEventListener("click", async (event) => {
    closeMenus(event.target.closest("details.menu"));
    const copier = event.target.closest(".copy-code");
    if (copier) copyCode(copier);
    const button = event.target.closest("[data-copy], [data-copy-url]");
    if (!button) return;
    const word = button.querySelector("[data-word]") || button;
    const before = word.textContent;
    try {
      // A promise, because browsers let pages copy only during a click.
      await navigator.clipboard.write([
        new ClipboardItem({ "text/plain": textFor(button) }),
      ]);
      word.textContent = gettext("Copied");
    } catch {
      word.textContent = gettext("Copy failed");
    }
    setTimeout(() => {
      word.textContent = before;
    }, 1600);
  });

  // Toasts leave after a while that nobody points at them or is inside, with time to
  // undo. Screen readers speak only what is added after the page has loaded.
  const SHOWN_FOR = 10_000,
    UNDO_FOR = 30_000,
    TOAST_TICK = 500;
  const toasts = document.querySelector("#part-toasts [role=status]");
  if (toasts?.children.length) {
    const all = [...toasts.children];
    toasts.replaceChildren();
    setTimeout(() => toasts.append(...all), 100);
    all.forEach(expireToast);
  }
  function expireToast(toast) {
    let left = toast.querySelector("form") ? UNDO_FOR : SHOWN_FOR;
    const timer = setInterval(() => {
      if (document.hidden || toast.parentElement?.matches(":hover, :focus-within"))
        return;
      left -= TOAST_TICK;
      if (left > 0 && toast.isConnected) return;
      clearInterval(timer);
      toast.remove();
    }, TOAST_TICK);
  }
  const dismiss = (toast) => {
    const next = toast.nextElementSibling ?? toast.previousElementSibling;
    toast.remove();
    focusMain(next?.querySelector("button"));
  };
  function focusMain(first) {
    const main = document.getElementById("main");
    main.tabIndex = -1;
    (first ?? main).focus({ preventScroll: true });
  }
  // The button of an undo is gone when its page has loaded.
  document.addEventListener("submit", (event) => {
    if (event.target.closest(".toast")) sessionStorage.setItem("undone", "1");
  });
  if (sessionStorage.getItem("undone")) focusMain();
  sessionStorage.removeItem("undone");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-dismiss]");
    if (button) dismiss(button.closest(".toast"));
  });
  document.addEventListener("keydown", (event) => {
    const toast = event.key === "Escape" && event.target.closest(".toast");
    if (toast) dismiss(toast);
  });

  // What a person sends must not fail in silence. What loads by itself tries again.
  const BY_HAND = ["click", "submit", "change", "input"];
  function showProblem(event, text) {
    const { sourceEvent, response } = event.detail.ctx ?? {};
    if (!BY_HAND.includes(sourceEvent?.type)) {
      if (event.target.hasAttribute?.("hx-sse:connect")) return; // see `failed`
      if (!response || response.status >= 502) setLost("part", "away");
      return;
    }
    alertToast(text);
  }
  function alertToast(text) {
    const place = document.querySelector("#part-toasts [role=alert]");
    const template = document.querySelector("#part-toasts [data-problem]");
    const toast = template?.content.firstElementChild.cloneNode(true);
    if (!toast) return;
    toast.querySelector(".grow").textContent = text;
    place.replaceChildren(toast);
    expireToast(toast);
  }
  document.addEventListener("htmx:error", (event) =>
    showProblem(
      event,
      gettext("The server cannot be reached. Check the connection, then try again."),
    ),
  );
  document.addEventListener("htmx:response:error", (event) => {
    const { status } = event.detail.ctx.response;
    const isRefused = status === 400 || status === 413;
    showProblem(
      event,
      isRefused
        ? gettext("The request is too large or malformed. Nothing was changed.")
        : interpolate(
            gettext("The server answered with error %(status)s. Reload the page."),
            { status },
            true,
          ),
    );
  });

  // Somebody else makes the decision that is being typed here: the server says who.
  const ANSWERS = "form[id^=approval-form-], form[id^=approval-outcome-]";
  const isChanged = (field) => {
    if (field.type === "select-one") {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(first, 0);
    }
    if (field.type === "checkbox" || field.name === "answer")
      return field.checked !== field.defaultChecked;
    return (
      /^(text|textarea|number)$/.test(field.type) && field.value !== field.defaultValue
    );
  };
  const isRefused = (form) => form?.querySelector(".errors, [aria-invalid=true]");
  const isAnswered = (form) => isRefused(form) || [...form.elements].some(isChanged);
  let typedForms = [];
  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    const isOther = (form) => form !== ctx?.sourceElement; // its response says what happened
    const forms = [...document.querySelectorAll(ANSWERS)];
    typedForms = forms.filter((form) => isOther(form) && isAnswered(form));
  });
  document.addEventListener("htmx:after:swap", () => {
    const isGone = ({ id }) => !document.getElementById(id);
    const gone = typedForms.filter(isGone);
    typedForms = typedForms.filter((form) => !isGone(form));
    if (gone.length) reportDecisions(gone).catch(() => {}); // the page is left
  });
  async function reportDecisions(forms) {
    const notices = (await Promise.all(forms.map(fetchNotice))).filter(Boolean);
    if (notices.length) alertToast(notices.join(" "));
  }
  async function fetchNotice(form) {
    const response = await fetch(form.dataset.decided);
    const isSignedOut = response.redirected;
    return response.ok && !isSignedOut ? response.text() : "";
  }

  // Text that is too long is refused before it is sent: the server rejects a large request.
  document.addEventListener("input", ({ target: box }) => {
    const limit = Number(box.dataset.maxChars);
    if (!limit) return;
    const count = box.value.length > limit ? [...box.value].length : 0; // as Python counts
    const problem = text(
      gettext("The text has %(count)s characters, at most %(limit)s are allowed."),
      { count: count.toLocaleString(language), limit: limit.toLocaleString(language) },
    );
    box.setCustomValidity(count > limit ? problem : "");
  });

  // The focus stays where it was: htmx keeps that of an element with an id; where the
  // element is gone, it stays in the part.
  let focusedPart = "";
  document.addEventListener("htmx:before:swap", (event) => {
    const { target } = event.detail.ctx;
    focusedPart = target?.contains?.(document.activeElement) ? target.id : "";
  });
  document.addEventListener("htmx:after:swap", () => {
    const part = document.activeElement === document.body && focusedPart;
    focusedPart = "";
    const left = part && document.getElementById(part);
    if (!left) return;
    left.tabIndex = -1;
    left.focus({ preventScroll: true });
  });

  // Scroll rows of tabs so that the selected one is visible next to the fading edge.
  const FADE = 32;
  function showChosenTab(where) {
    for (const row of where.querySelectorAll(".tabs")) {
      const tab = row.querySelector("[aria-current]")?.getBoundingClientRect(),
        box = row.getBoundingClientRect();
      if (tab && (tab.left < box.left + FADE || tab.right > box.right - FADE))
        row.scrollLeft += (tab.left + tab.right - box.left - box.right) / 2;
    }
  }
  showChosenTab(document);
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target?.id === "run-detail")
      showChosenTab(document.getElementById("run-detail") ?? document);
  });

  // Scrollable boxes take the focus, so that the keyboard can scroll them.
  function reachScrolled(where) {
    for (const box of where.querySelectorAll("pre.code, #run-detail-scroll"))
      if (box.scrollHeight > box.clientHeight || box.scrollWidth > box.clientWidth)
        box.tabIndex = 0;
  }
  reachScrolled(document);
  document.addEventListener("toggle", (event) => reachScrolled(event.target), true);
  document.addEventListener("htmx:after:swap", () => reachScrolled(document));
  addEventListener("resize", () => reachScrolled(document));

  // Of a long list the first matches are shown, so that Tab leads past it.
  function filterRows(search) {
    const word = search.value.trim().toLowerCase();
    const rows = [...document.querySelectorAll(search.dataset.filter)];
    const group = search.dataset.groups
      ? document.querySelector(search.dataset.groups).value
      : "";
    const found = rows.filter(
      (row) =>
        row.dataset.find.toLowerCase().includes(word) &&
        (!group || row.closest("[data-group]").dataset.group === group),
    );
    const shown = new Set(found.slice(0, Number(search.dataset.most) || found.length));
    for (const row of rows) row.hidden = !shown.has(row) && !("kept" in row.dataset);
    for (const box of new Set(rows.map((row) => row.closest("[data-group]")))) {
      const count = box?.querySelector(".count");
      if (count) count.textContent = found.filter((row) => box.contains(row)).length;
    }
    document.querySelector(search.dataset.none).hidden = found.length > 0;
    const rest = search.closest(".find").parentElement.querySelector("[data-rest]");
    if (!rest) return;
    rest.hidden = shown.size === found.length;
    rest.textContent = text(
      gettext("The first %(shown)s of %(count)s. Search to find the others."),
      { shown: shown.size, count: found.length },
    );
  }
  document.addEventListener("input", (event) => {
    const search = event.target.closest("[data-filter]");
    if (search) filterRows(search);
  });
  document.querySelectorAll("[data-filter]").forEach(filterRows);

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-theme-form]");
    if (!form || !event.submitter) return;
    event.preventDefault();
    const body = new FormData(form, event.submitter);
    const theme = event.submitter.value;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    form
      .querySelectorAll("button")
      .forEach((one) =>
        one.setAttribute("aria-pressed", String(one === event.submitter)),
      );
    closeMenus(null);
    fetch(form.action, { method: "POST", body, redirect: "manual" });
  });

  // A box with data-follow keeps its end in sight until a person scrolls up. When the
  // event of its own scrolling comes, more text may be below: distance alone says nothing.
  const tops = new WeakMap();
  document.addEventListener(
    "scroll",
    ({ target: box }) => {
      if (!box.matches?.("[data-follow]")) return;
      const isUp = box.scrollTop < (tops.get(box) ?? 0);
      tops.set(box, box.scrollTop);
      if (box.scrollHeight - box.scrollTop - box.clientHeight < 60)
        delete box.dataset.isLeft;
      else if (isUp) box.dataset.isLeft = "";
    },
    { capture: true, passive: true },
  );

  // Rows that a new row above moves slide to their place.
  const SLIDE = { duration: 200, easing: "ease-out" };
  const MOST_SLIDE = 240; // pixels; what moves further appears in its place
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)");
  let places = new Map();
  const topOf = (row) => row.getBoundingClientRect().top;
  const slidingRows = () => [...document.querySelectorAll("[data-slides]")];
  document.addEventListener("htmx:before:swap", () => {
    places = new Map(slidingRows().map((row) => [row.id, topOf(row)]));
  });
  document.addEventListener("htmx:after:swap", () => {
    if (isCalm.matches || places.size === 0) return;
    const moved = slidingRows().map((row) => [row, places.get(row.id) - topOf(row)]);
    places = new Map();
    for (const [row, distance] of moved)
      if (distance && Math.abs(distance) <= MOST_SLIDE)
        row.animate(
          [{ transform: `translateY(${distance}px)` }, { transform: "none" }],
          SLIDE,
        );
  });
})();
