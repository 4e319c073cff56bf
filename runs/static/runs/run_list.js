// The list of runs: keys, and selecting many runs. Without this script each run is
// selected by its box and opened by its link, and the filters are a form.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const rows = () => [...document.querySelectorAll("#run-selection tbody tr")];
  const boxOf = (row) => row.querySelector("td.sel input");
  const linkOf = (row) => row.querySelector(".c-q a");
  const current = () => document.activeElement?.closest("#run-selection tbody tr");
  let last = null; // the row that was selected last: a range begins there

  // Selecting.
  function select(row, isOn) {
    boxOf(row).checked = isOn;
    last = row.id;
    releaseUnseen();
    row.scrollIntoView({ block: "nearest" }); // the bar of actions may have come
  }
  // "All matching runs" is cleared when its bar is hidden, and when the filters change.
  function releaseAll() {
    const all = find("#run-all-matching-box");
    if (all) all.checked = false;
  }
  function releaseUnseen() {
    if (!rows().some((row) => boxOf(row).checked)) releaseAll();
  }
  function selectRange(row) {
    const all = rows();
    const places = [all.findIndex((one) => one.id === last), all.indexOf(row)];
    if (places[0] < 0) return select(row, true);
    const [first, end] = places.sort((a, b) => a - b);
    for (const one of all.slice(first, end + 1)) boxOf(one).checked = true;
    last = row.id;
  }
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("#run-selection td.sel input");
    if (!box) return;
    const row = box.closest("tr");
    if (event.shiftKey && box.checked) selectRange(row);
    last = row.id;
    row.scrollIntoView({ block: "nearest" });
  });
  // The box of the heads selects the page; that of the bar, the page or nothing.
  document.addEventListener("change", (event) => {
    const box = event.target.closest?.("[data-select-page]");
    if (!box) return;
    const isOn = rows().some((row) => !boxOf(row).checked);
    for (const row of rows()) boxOf(row).checked = isOn;
    box.checked = Boolean(box.closest(".bulk"));
  });
  document.addEventListener("change", releaseUnseen);
  document.addEventListener("htmx:after:swap", releaseUnseen);
  document.addEventListener("htmx:before:request", (event) => {
    if (event.target.id === "run-facets") releaseAll();
  });

  // One run beside the list; on a phone, its page.
  const pane = () => find("#run-peek");
  const isWide = matchMedia("(min-width: 46.01rem)");
  const isOpen = () => Boolean(pane()) && !pane().hidden;
  const peekedRow = () => document.getElementById(`run-row-${pane().dataset.run}`);
  function markPeeked() {
    for (const row of rows()) row.toggleAttribute("data-peeked", isPeeked(row));
  }
  function peek(row) {
    if (!isWide.matches) return linkOf(row).click();
    htmx.ajax("GET", row.dataset.peekUrl, { target: "#run-peek", swap: "outerHTML" });
  }
  function closePeek() {
    const empty = document.createElement("aside"); // without what follows the run
    empty.className = pane().className;
    empty.id = pane().id;
    empty.hidden = true;
    const row = peekedRow(),
      hasFocus = pane().contains(document.activeElement);
    pane().replaceWith(empty);
    if (hasFocus && row) linkOf(row).focus();
    markPeeked();
  }
  const isPeeked = (row) => isOpen() && row === peekedRow();
  function peekBeside(step) {
    const all = rows();
    const place = all.indexOf(peekedRow());
    const row = all[place + step];
    if (place < 0 || !row) return;
    linkOf(row).focus();
    peek(row);
  }
  document.addEventListener("htmx:after:swap", markPeeked);
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-peek]");
    if (button?.dataset.peek === "close") return closePeek();
    if (button) return peekBeside(Number(button.dataset.peek));
    const row = event.target.closest?.("#run-selection tbody tr");
    if (!row || event.target.closest("a, input, button, td.sel")) return;
    if (!isWide.matches || getSelection().toString()) return;
    linkOf(row).focus();
    peek(row);
  });

  // Live. A list whose top is out of sight gets the number of new runs, not the runs.
  const FIGURES_MS = 15_000;
  let counted = Date.now();
  const list = () => find("#run-list");
  function isScrolled() {
    const [first] = rows();
    if (!first) return false;
    const top = first.closest(".scroll").getBoundingClientRect().top + 32;
    return first.getBoundingClientRect().bottom < Math.max(top, 80);
  }
  const listTop = () => (isScrolled() ? { "X-List-Top": boxOf(rows()[0]).value } : {});
  // Another period replaces the one that was selected in the bars, or typed.
  document.addEventListener(
    "change",
    (event) => {
      if (event.target.id !== "run-since") return;
      event.target.querySelector("[data-selected-time]")?.remove();
      for (const name of ["begin", "end"])
        document.getElementById("run-facets").elements[name].value = "";
    },
    true,
  );
  document.addEventListener("htmx:config:request", (event) => {
    const { request, target } = event.detail.ctx;
    if (event.target === list() && target === list())
      Object.assign(request.headers, listTop());
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.target?.id !== "run-list") return;
    if (Date.now() - counted < FIGURES_MS) return;
    counted = Date.now();
    htmx.trigger("#run-figures-loader", "refresh");
  });
  function reload(url, headers) {
    return htmx.ajax("GET", url, {
      target: "#run-list",
      swap: "outerMorph",
      headers: { "X-List-State": "", ...headers },
    });
  }
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx.sourceElement?.id !== "run-peek-rating") return;
    reload(location.pathname + location.search, listTop());
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-to-top]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const box = find("#run-selection > .scroll");
    box.scrollTop = 0;
    if (isScrolled()) list().scrollIntoView({ block: "start" });
    reload(link.getAttribute("href")).then(() => {
      const [first] = rows();
      if (first) linkOf(first).focus();
    });
  });

  // A time is selected by dragging over the bars, or with Shift and the arrow keys, which
  // move between them (roving.js); a click or Enter follows the bar's link.
  const DRAGGED = 5; // pixels
  let drag = null;
  const barsOf = (hist) => [...hist.querySelectorAll("a")];
  function placeAt(hist, x) {
    const box = hist.getBoundingClientRect(),
      count = barsOf(hist).length;
    const place = Math.floor(((x - box.left) / box.width) * count);
    return Math.min(Math.max(place, 0), count - 1);
  }
  function drawBrush({ hist, from, to }) {
    const count = barsOf(hist).length;
    const brush = hist.querySelector(".brush");
    brush.setAttribute("x", `${(100 * Math.min(from, to)) / count}%`);
    brush.setAttribute("width", `${(100 * (Math.abs(to - from) + 1)) / count}%`);
  }
  function openTime({ hist, from, to }) {
    const bars = barsOf(hist),
      query = new URLSearchParams(location.search);
    for (const name of ["since", "before", "after", "figures"]) query.delete(name);
    query.set("begin", bars[Math.min(from, to)].dataset.begin);
    query.set("end", bars[Math.max(from, to)].dataset.end);
    location.assign(
      `?${query.toString().replaceAll("%3A", ":").replaceAll("%2C", ",")}`,
    );
  }
  document.addEventListener("pointerdown", (event) => {
    const hist = event.target.closest?.(".hist");
    if (!hist || event.button !== 0) return;
    const from = placeAt(hist, event.clientX);
    drag = { hist, from, to: from, x: event.clientX, isDragged: false };
  });
  document.addEventListener("dragstart", (event) => {
    if (event.target.closest?.(".hist")) event.preventDefault(); // a link would be moved
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.isDragged ||= Math.abs(event.clientX - drag.x) > DRAGGED;
    drag.to = placeAt(drag.hist, event.clientX);
    if (drag.isDragged) drawBrush(drag);
  });
  document.addEventListener("pointerup", () => {
    const done = drag;
    drag = null;
    if (!done?.isDragged) return;
    addEventListener("click", (event) => event.preventDefault(), {
      capture: true,
      once: true,
    });
    openTime(done);
  });
  document.addEventListener("pointercancel", () => {
    drag?.hist.querySelector(".brush").setAttribute("width", "0");
    drag = null;
  });

  let first = null; // the bar at which a selection with Shift began
  document.addEventListener(
    "keydown",
    (event) => {
      const bar = event.target.closest?.(".hist a");
      if (!bar || event.key === "Shift" || event.key === "Tab") return;
      const hist = bar.closest(".hist"),
        place = barsOf(hist).indexOf(bar);
      if (event.key === "Enter" && first !== null && first !== place) {
        event.preventDefault();
        openTime({ hist, from: first, to: place });
      } else first = event.shiftKey ? (first ?? place) : null;
    },
    { capture: true }, // before the focus moves
  );
  document.addEventListener("focusin", (event) => {
    const hist = event.target.closest?.(".hist");
    if (!hist) first = null;
    const to = hist && first !== null ? barsOf(hist).indexOf(event.target) : null;
    if (to !== null) drawBrush({ hist, from: first, to });
    else find(".hist .brush")?.setAttribute("width", "0");
  });

  // Keys. The row whose link or box has the focus is the current one.
  function go(step) {
    const all = rows(),
      place = all.indexOf(current());
    const row =
      all[place < 0 ? 0 : Math.min(Math.max(place + step, 0), all.length - 1)];
    if (!row) return;
    linkOf(row).focus();
    if (isOpen() && place >= 0) peekSoon();
  }
  let soon;
  function peekSoon() {
    clearTimeout(soon); // a key that is held down passes many rows
    soon = setTimeout(() => current() && isOpen() && peek(current()), 120);
  }
  function onRow(act) {
    const row = current();
    if (row) act(row);
    else go(0);
  }
  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    x: () => onRow((row) => select(row, !boxOf(row).checked)),
    X: () => onRow(selectRange),
    " ": () => onRow((row) => (isPeeked(row) ? closePeek() : peek(row))),
    f: () => {
      const boxes = [...document.querySelectorAll("#run-facets input")];
      boxes.find((box) => box.checkVisibility())?.focus();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || find("dialog[open]")) return;
    const isText = event.target.closest(
      "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]",
    );
    if (event.key === "Escape" && !isText && isOpen()) closePeek();
    if (event.key === "Enter" && event.target.matches("#run-selection td.sel input")) {
      event.preventDefault(); // a form would do what its first button says
      linkOf(event.target.closest("tr")).click();
    }
    if (event.key === "Enter" && event.target.id === "chosen-tag") {
      event.preventDefault();
      find("#run-selection [value=tag]").click();
    }
    const isControl =
      event.key === " " && event.target.closest("input, button, summary");
    const act = isText || isControl ? null : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
