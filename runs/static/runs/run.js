// The run page: keys, following the newest step, running clocks. Without this script
// every step, filter and search is a link or a form.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const rows = () =>
    [...document.querySelectorAll("#run-steps-pane .step:not(.nested .step)")].filter(
      (row) => row.checkVisibility(),
    );
  const asked = () => new URLSearchParams(location.search);
  const chosen = () =>
    asked().get("step") ??
    find("#run-detail")?.dataset.step ??
    (find("#run-answer") && !find("#run-follow") ? "0" : null);
  const stepOf = (row) =>
    new URLSearchParams(row.getAttribute("href").slice(1)).get("step");
  const isLive = () => Boolean(find("#run-live")?.hasAttribute("hx-sse:connect"));
  const MOST_ROWS = 300,
    KEPT_ROWS = 200,
    NEAR = 48;

  // Addresses: the filters of the rows stay in the address when a step is selected.
  document.addEventListener("htmx:config:request", (event) => {
    const source = event.target,
      request = event.detail.ctx.request;
    const where = new URL(request.action, location.href);
    if (source.closest("#run-earlier"))
      where.searchParams.set("before", numbers()[0] ?? 1);
    else if (source.closest("#run-filters")) {
      const step = asked().get("step") ?? find("#run-detail")?.dataset.step ?? "0";
      if ((step !== "0" || asked().has("step")) && !where.searchParams.has("step"))
        where.searchParams.set("step", step);
      request.action = where.pathname + where.search;
      return;
    } else if (!source.closest(".step, #run-detail .tabs, #run-follow-link")) return;
    for (const name of ["show", "q", "as", "in"]) {
      const value = asked().get(name);
      if (value && !where.searchParams.has(name)) where.searchParams.set(name, value);
    }
    request.action = where.pathname + where.search;
  });

  // Rows: the selected one, how many there are, which of them match a search.
  const lines = () => [...document.querySelectorAll("#run-steps > li")];
  const numberOf = (line) =>
    Number(line.id.slice("run-step-".length).split("-")[0]) || 0;
  const numbers = () => lines().map(numberOf);
  let known = Math.max(0, ...numbers());
  let following = isLive() && asked().get("step") === null;
  let below = 0;
  let jumps = false;
  const leftAt = new Map(); // addresses left from the list of steps, on a phone
  let wanted = null; // the step selected last, while an earlier one still loads

  function mark() {
    const title = find("#run-detail h2")?.textContent,
      link = find("#run-views a:nth-child(2)");
    if (title && link && link.textContent !== title) link.textContent = title;
    if (find("#run-detail")?.dataset.step === wanted) wanted = null;
    const step = wanted ?? chosen(),
      followed = step === null ? rowFollowed() : null;
    for (const row of document.querySelectorAll("#run-steps-pane .step")) {
      if (
        row === followed ||
        (step !== null && (stepOf(row) ?? row.dataset.number) === step)
      )
        row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  function rowFollowed() {
    return find(
      `#run-step-${find("#run-follow")?.dataset.step} > .step, #run-now .step`,
    );
  }

  function last() {
    const all = rows();
    return all[all.length - 1];
  }

  function atEnd() {
    const row = last();
    if (!row) return true;
    const box = find("#run-scroll").getBoundingClientRect();
    return (
      row.getBoundingClientRect().bottom <= Math.min(box.bottom, innerHeight) + NEAR
    );
  }

  function scrollsItself() {
    return getComputedStyle(find("#run-scroll")).overflowY === "auto";
  }

  function toEnd() {
    const pane = find("#run-scroll");
    if (scrollsItself()) pane.scrollTop = pane.scrollHeight;
    else last()?.scrollIntoView({ block: "nearest" });
  }

  function tellBelow(count) {
    below = count;
    const pill = find("#run-below");
    if (!pill) return;
    pill.hidden = below === 0;
    pill.querySelector("[data-word]").textContent = interpolate(
      ngettext("%(count)s new step below", "%(count)s new steps below", below),
      { count: below },
      true,
    );
  }

  function arrived() {
    const list = find("#run-steps");
    if (!list) return;
    const fresh = lines().filter((line) => numberOf(line) > known);
    const word = list.dataset.search?.toLowerCase();
    if (word) {
      for (const line of fresh)
        line.hidden = !line.textContent.toLowerCase().includes(word);
      searchAgain();
    }
    known = Math.max(known, ...fresh.map(numberOf));
    if (following) {
      trim();
      toEnd();
    } else if (fresh.length && !atEnd())
      tellBelow(below + fresh.filter((line) => line.checkVisibility()).length);
    const link = find("#run-next-error");
    if (link) link.hidden = find("#run-count-errors")?.textContent === "0";
    mark();
  }

  // The server decides which new or changed rows match the search.
  let searching = 0;
  function searchAgain() {
    searching ||= setTimeout(async () => {
      const isTyping = find("#run-search")?.value !== (asked().get("q") ?? "");
      try {
        if (!isTyping)
          await window.htmx.ajax("GET", location.pathname + location.search, {
            source: "#run-steps-pane",
            target: "#run-steps-pane",
            swap: "outerMorph",
            headers: { "HX-Target": "section#run-steps-pane" },
          });
      } finally {
        searching = 0;
      }
    }, 700);
  }

  // A run may have thousands of steps: a following page keeps the newest ones and a link.
  function trim() {
    const all = lines();
    if (all.length <= MOST_ROWS) return;
    all.slice(0, all.length - KEPT_ROWS).forEach((line) => line.remove());
    const earlier = find("#run-earlier");
    if (!earlier) return;
    earlier.hidden = false;
    const word = earlier.querySelector("[data-word]");
    const count = numbers()[0] - 1,
      shown = count.toLocaleString(document.documentElement.lang);
    if (word)
      word.textContent = interpolate(
        ngettext("%(count)s earlier step", "%(count)s earlier steps", count),
        { count: shown },
        true,
      );
  }

  // Streamed text: its end stays visible until the user scrolls up.
  function toDraftEnd() {
    const pane = find("#run-detail-scroll");
    if (!find("#draft-text")) delete pane?.dataset.isLeft;
    else if (!("isLeft" in pane.dataset)) pane.scrollTop = pane.scrollHeight;
  }

  function onScroll() {
    if (!isLive()) return;
    following = atEnd() && asked().get("step") === null;
    if (atEnd()) tellBelow(0);
  }

  // Reload the selected step when the stream says that it changed.
  let due = 0;
  function refresh() {
    clearTimeout(due);
    due = setTimeout(
      () =>
        window.htmx.ajax("GET", location.pathname + location.search, {
          source: "#run-detail",
          target: "#run-detail",
          swap: "outerMorph",
        }),
      250,
    );
  }
  // Only the step selected last is shown, also if the stream replaced the pane meanwhile:
  // htmx drops an answer whose target is gone.
  let selection = null;
  const selects = (ctx) =>
    ctx.target?.id === "run-detail" && ctx.sourceElement.id !== "run-detail";
  document.addEventListener("htmx:before:request", (event) => {
    const ctx = event.detail.ctx;
    if (!selects(ctx)) return;
    selection?.abort();
    selection = ctx.request;
    if (!ctx.sourceElement.closest(".step")) wanted = null;
  });
  document.addEventListener("htmx:after:request", (event) => {
    const ctx = event.detail.ctx;
    if (selects(ctx) && !ctx.target.isConnected)
      ctx.target = find("#run-detail") ?? ctx.target;
  });
  // Drop answers that were requested at another address.
  document.addEventListener("htmx:before:swap", (event) => {
    const ctx = event.detail.ctx,
      isOwn = ctx.sourceElement?.matches("#run-detail, #run-steps-pane");
    if (isOwn && ctx.request.action !== location.pathname + location.search)
      event.preventDefault();
  });

  // The title of the tab, and a run that was resumed elsewhere after it had ended.
  const hasTypedText = () =>
    [...document.querySelectorAll("main :is(textarea, input)")].some(
      (box) => box.checkVisibility() && box.value !== box.defaultValue,
    );
  document.addEventListener("htmx:after:swap", () => {
    const title = find("#run-progress")?.dataset.title;
    if (title) document.title = `${title} · Agentsite`;
    const link = find("#run-actions[data-resumed] > a");
    const isOwn = link?.pathname === location.pathname; // not the answer to a form
    if (isOwn && !hasTypedText()) location.reload();
  });

  document.addEventListener("htmx:after:swap", (event) => {
    const ctx = event.detail.ctx,
      source = ctx.sourceElement ?? event.target;
    if (source.id === "run-live" || ctx.text?.includes('id="run-live"')) {
      const step = chosen();
      const isOver = ctx.text?.includes('<div id="run-live" hidden></div>');
      if (
        step !== null &&
        (ctx.text?.includes(`id="run-step-${step}"`) || (isOver && step === "0"))
      )
        refresh();
      if (isOver) following = false;
      arrived();
      toDraftEnd();
      return;
    }
    if (ctx.target?.id === "run-steps-pane") {
      if (chosen() !== null && !searching) refresh(); // it marks the search text
      known = Math.max(0, ...numbers());
      tellBelow(0);
    }
    known = Math.max(known, ...numbers());
    mark();
    if (ctx.target?.id === "run-detail") arriveAtHit();
    if (!jumps || source.closest?.("#run-live")) return;
    jumps = false; // when the panes are stacked
    find("#run-detail")?.scrollIntoView();
  });

  // Clocks and growing bars between two messages of the stream.
  const began = new WeakMap();
  const two = (value) => String(value).padStart(2, "0");
  function asClock(all) {
    const [hours, minutes, seconds] = [
      Math.floor(all / 3600),
      Math.floor(all / 60) % 60,
      all % 60,
    ];
    return hours
      ? `${hours}:${two(minutes)}:${two(seconds)}`
      : `${minutes}:${two(seconds)}`;
  }
  // As `duration` of the server, so that nothing changes when a run ends.
  const text = (message, value) => interpolate(message, { value }, true);
  const tenths = new Intl.NumberFormat(document.documentElement.lang, {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
  });
  function asDuration(seconds) {
    const rounded = (number) => Math.floor(number + 0.5),
      whole = rounded(seconds),
      minutes = rounded(seconds / 60);
    if (rounded(seconds * 1000) < 100)
      return text(gettext("%(value)s ms"), rounded(seconds * 1000));
    if (rounded(seconds * 10) < 100)
      return text(gettext("%(value)s s"), tenths.format(rounded(seconds * 10) / 10));
    if (whole < 60) return text(gettext("%(value)s s"), whole);
    if (whole < 3600)
      return interpolate(gettext("%(clock)s min"), { clock: asClock(whole) }, true);
    return interpolate(
      gettext("%(hours)s h %(minutes)s min"),
      { hours: Math.floor(minutes / 60), minutes: minutes % 60 },
      true,
    );
  }
  function passed(element) {
    if (!began.has(element)) began.set(element, performance.now());
    return (performance.now() - began.get(element)) / 1000;
  }
  function clock() {
    for (const element of document.querySelectorAll("[data-clock]")) {
      const all = Number(element.dataset.clock) + passed(element);
      const words = asDuration(all);
      if (element.textContent !== words) element.textContent = words;
    }
    for (const bar of document.querySelectorAll("[data-grows]")) {
      const all = Number(bar.dataset.grows) + passed(bar);
      bar.setAttribute("width", `${((all / 16) * 100).toFixed(3)}%`);
      if (bar.closest("#run-whole")) widen(all);
    }
  }
  // Seconds between two lines of the axis, by scale, as in time_scale.py.
  const QUARTERS = [
    0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600,
    7200, 21600, 43200, 86400, 259200, 864000, 2592000,
  ];
  function widen(seconds) {
    const head = find("#run-steps-head");
    if (!head) return;
    const fits = QUARTERS.findIndex((quarter) => quarter * 4 >= seconds);
    const scale = fits < 0 ? QUARTERS.length - 1 : fits;
    if (scale <= Number(head.dataset.scale.slice(1))) return;
    head.dataset.scale = `s${scale}`;
    [...head.querySelectorAll(".axis span")].forEach((tick, n) => {
      tick.textContent = n ? asTick(QUARTERS[scale] * n) : "0";
    });
  }
  function asTick(seconds) {
    if (seconds < 1) return text(gettext("%(value)s ms"), Math.round(seconds * 1000));
    return seconds < 60 ? text(gettext("%(value)s s"), seconds) : asClock(seconds);
  }

  // Keys.
  let opening = 0;
  function choose(row) {
    rows().forEach((one) => one.removeAttribute("aria-current"));
    row.setAttribute("aria-current", "true");
    row.scrollIntoView({ block: "nearest" });
    following = false;
    const step = stepOf(row);
    wanted = step;
    clearTimeout(opening);
    // A held key passes many rows; the stream may have replaced this one meanwhile.
    opening = setTimeout(
      () =>
        rows()
          .find((one) => stepOf(one) === step)
          ?.click(),
      70,
    );
  }
  function move(by) {
    const all = rows(),
      at = all.findIndex((row) => row.matches("[aria-current]"));
    // A live page without a selected step is at the newest, also if it was scrolled.
    const now = at < 0 && isLive() && chosen() === null ? all.length - 1 : at;
    const next = all[now + by];
    const more = find(`#run-${by > 0 ? "later" : "earlier"}:not([hidden]) a`);
    // Earlier rows belong between the first one shown and that of the whole run.
    if (more && (!next || (by < 0 && stepOf(next) === "0"))) more.click();
    else if (next) choose(next);
  }
  function nextError() {
    const all = rows(),
      now = all.findIndex((row) => row.matches("[aria-current]"));
    const next = all
      .slice(now + 1)
      .find((row) => row.matches("[data-state=error], [data-state=failed]"));
    if (next) return choose(next);
    const link = find("#run-next-error");
    if (!link) return;
    const where = new URL(link.href);
    where.searchParams.set("after", chosen() ?? 0);
    location.assign(where);
  }
  // Matches of the search: those of the open step, then those of the next row.
  let entering = 0; // from which side the loading step is entered
  const hits = () => [
    ...document.querySelectorAll("#run-detail mark:not([data-goes-on])"),
  ];
  function goTo(hit) {
    for (const one of document.querySelectorAll("mark[data-now]"))
      delete one.dataset.now;
    for (
      let fold = hit.closest("details");
      fold;
      fold = fold.parentElement.closest("details")
    )
      fold.open = true;
    hit.dataset.now = "";
    show("2");
    hit.scrollIntoView({ block: "center" });
  }
  function moveHit(by) {
    if (!asked().get("q")) return find("#run-search")?.focus();
    const all = hits(),
      now = all.findIndex((hit) => "now" in hit.dataset);
    const next = now < 0 && by < 0 ? null : all[now + by];
    if (next) return goTo(next);
    entering = by;
    move(by);
  }
  function arriveAtHit() {
    const all = hits(),
      by = entering;
    entering = 0;
    if (by && all.length) goTo(by > 0 ? all[0] : all[all.length - 1]);
  }

  const KEYS = {
    h: () => moveHit(1),
    H: () => moveHit(-1),
    j: () => move(1),
    k: () => move(-1),
    e: nextError,
    f: () =>
      (
        find("[data-key=f]") ??
        find("#run-actions a[href*='/fork/'], #run-need a[href*='/fork/']")
      )?.click(),
    n: () => (isLive() ? (find("#run-follow-link")?.click() ?? follow()) : null),
    a: () => (find("#run-need .btn.primary") ?? find("#run-need"))?.focus(),
    "[": () => find("#run-previous")?.click(),
    "]": () => find("#run-next")?.click(),
    t: () => find("#run-filters .seg a:not([aria-current])")?.click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const tab = /^[1-6]$/.test(event.key)
      ? document.querySelectorAll("#run-detail .tabs a")[event.key - 1]
      : null;
    const act = tab ? () => tab.click() : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  function follow() {
    following = true;
    tellBelow(0);
    if (find("#run-steps")?.hasAttribute("data-end")) toEnd();
    else {
      const listed = asked().get("in");
      const kept = listed === null ? "" : `?in=${encodeURIComponent(listed)}`;
      location.assign(location.pathname + kept);
    }
  }

  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = event.target;
    const row = target.closest("#run-steps-pane .step");
    if (row) {
      if (find("#run-panes").dataset.view === "1") leftAt.set(location.href, "1");
      rows().forEach((one) => one.removeAttribute("aria-current"));
      row.setAttribute("aria-current", "true");
      wanted = stepOf(row);
      following = isLive() && wanted === null;
      show("2");
      jumps = event.isTrusted && !scrollsItself();
    } else if (target.closest("#run-below")) follow();
    else if (target.closest("#run-follow-link")) following = true;
    else if (target.closest("#run-next-error")) {
      event.preventDefault();
      nextError();
    } else if (target.closest("[data-open]"))
      find(target.closest("[data-open]").dataset.open).showModal();
    else if (target.closest("[data-copy-link]"))
      copyLink(target.closest("[data-copy-link]"));
    else if (target.closest("#run-views a")) {
      event.preventDefault();
      show(String([...find("#run-views").children].indexOf(target.closest("a")) + 1));
    }
  });
  function show(view) {
    const panes = find("#run-panes");
    if (panes) panes.dataset.view = view;
    [...(find("#run-views")?.children ?? [])].forEach((link, n) => {
      if (String(n + 1) === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  }
  async function copyLink(button) {
    const address = `${location.origin}${location.pathname}?step=${chosen()}`;
    try {
      await navigator.clipboard.writeText(address);
      button.title = gettext("Copied");
      button.dataset.done = "";
    } catch {
      window.prompt(gettext("Address of this step"), address);
    }
    setTimeout(() => {
      delete button.dataset.done;
    }, 1600);
  }

  let back = null; // the pane that Back leads to
  document.addEventListener("htmx:before:history:restore", () => {
    selection?.abort();
    selection = wanted = null;
    clearTimeout(due);
    back = leftAt.get(location.href) ?? null;
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (!event.detail.ctx.request?.headers["HX-History-Restore-Request"]) return;
    if (back) show(back);
    back = null;
  });

  // A banner that arrives moves the panes down smoothly, so that nobody loses the line.
  let panesTop = find("#run-panes").offsetTop;
  const panesMoved = () => {
    const before = panesTop;
    panesTop = find("#run-panes")?.offsetTop ?? before;
    return panesTop - before;
  };
  new ResizeObserver(panesMoved).observe(find("#run-header"));
  const observer = new MutationObserver(() => {
    const down = panesMoved();
    if (down > 0 && !matchMedia("(prefers-reduced-motion: reduce)").matches)
      find("#run-panes").animate(
        [{ transform: `translateY(${-down}px)` }, { transform: "none" }],
        { duration: 250, easing: "ease-out" },
      );
  });
  observer.observe(find("#run-panes").parentElement, { childList: true });
  observer.observe(find("#run-banner"), { childList: true });

  // Calls that a person opened or closed stay so when the banner changes.
  const toggled = new Set();
  document.addEventListener("click", ({ target }) => {
    const call = target.closest("[id^=approval-banner-] > summary")?.parentElement;
    if (call) toggled.add(call.id);
  });
  document.addEventListener("htmx:before:swap", ({ detail }) => {
    const fresh = detail.tasks.flatMap(({ fragment }) => [
      ...(fragment?.querySelectorAll("[id^=approval-banner-]") ?? []),
    ]);
    for (const call of fresh)
      if (toggled.has(call.id)) call.open = find(`#${call.id}`)?.open ?? call.open;
  });

  document.addEventListener("scroll", onScroll, { capture: true, passive: true });
  setInterval(clock, 250);
  clock();
  if (!scrollsItself())
    following &&= atEnd(); // where the window scrolls, the header comes first
  else if (following) toEnd();
  else find("#run-steps .step[aria-current]")?.scrollIntoView({ block: "center" });
})();
