// A first schedule starts with the browser's time zone.
(() => {
  "use strict";
  const zone = document.querySelector("[data-own-zone] select");
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!zone || ![...zone.options].some((option) => option.value === own)) return;
  zone.value = own;
  document.addEventListener("DOMContentLoaded", () =>
    zone.dispatchEvent(new Event("change", { bubbles: true })),
  );
})();
