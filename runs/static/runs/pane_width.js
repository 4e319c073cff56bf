// A border between two panes that can be moved by pointer and keys; the browser keeps it.
(() => {
  "use strict";
  const KEY = "run-pane-width",
    LEAST = 30,
    MOST = 75,
    USUAL = 57;
  const panes = document.getElementById("run-panes");
  if (!panes) return;
  const border = document.createElement("div");
  border.className = "pane-border";
  border.tabIndex = 0;
  for (const [name, value] of Object.entries({
    role: "separator",
    "aria-orientation": "vertical",
    "aria-label": gettext("Width of the steps"),
    "aria-controls": "run-steps-pane",
    "aria-valuemin": LEAST,
    "aria-valuemax": MOST,
  }))
    border.setAttribute(name, value);
  let now = USUAL;

  function place(percent, { keep = true } = {}) {
    now = Math.round(Math.min(MOST, Math.max(LEAST, percent)));
    border.setAttribute("aria-valuenow", now);
    panes.style.setProperty("--steps-width", `${now}%`);
    try {
      if (keep) localStorage.setItem(KEY, now);
    } catch {
      // Without storage the width lasts until the page is left.
    }
  }

  function stored() {
    try {
      return Number(localStorage.getItem(KEY)) || USUAL;
    } catch {
      return USUAL;
    }
  }

  border.addEventListener("pointerdown", (event) => {
    border.setPointerCapture(event.pointerId);
    event.preventDefault();
    border.focus();
  });
  border.addEventListener("pointermove", (event) => {
    if (!border.hasPointerCapture(event.pointerId)) return;
    const box = panes.getBoundingClientRect();
    const part = ((event.clientX - box.left) / box.width) * 100;
    place(getComputedStyle(panes).direction === "rtl" ? 100 - part : part);
  });
  border.addEventListener("dblclick", () => place(USUAL));
  border.addEventListener("keydown", (event) => {
    const target = {
      ArrowLeft: now - 2,
      ArrowRight: now + 2,
      Home: LEAST,
      End: MOST,
      Enter: USUAL,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    place(target);
  });
  panes.append(border);
  place(stored(), { keep: false });
})();
