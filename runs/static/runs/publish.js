// Publishing with the keyboard: J and K go through the replays, Enter compares one.
// A draft that has not passed its gate waits for a reason.
(() => {
  "use strict";
  function move(step) {
    const links = [...document.querySelectorAll("#publish-replays a.go")];
    const row = document.activeElement.closest("#publish-replays tbody tr");
    const here = links.findIndex((one) => row?.contains(one));
    links[here < 0 ? 0 : here + step]?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    move(step);
  });

  function check() {
    const reason = document.getElementById("publish-reason");
    const button = document.querySelector("[data-needs-reason]");
    if (button)
      button.disabled = reason.value.trim().length < Number(reason.dataset.least);
  }
  document.addEventListener("input", check);
  document.addEventListener("htmx:after:swap", check);
  addEventListener("pageshow", check);
})();
