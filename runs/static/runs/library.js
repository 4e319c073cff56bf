// The dialog with the tools and agents that an agent can add.
(() => {
  "use strict";
  const dialog = document.getElementById("agent-library");
  const used = document.querySelector("#agent-tool-table tbody");
  if (!used) return;
  const nameOf = (row) => row.id.replace("agent-tool-row-", "");
  const isOn = (row) => row.querySelector("select").value !== "off";

  function count() {
    const all = [...document.querySelectorAll("#agent-tools tr[data-find]")];
    const on = all.filter(isOn).length;
    const before = document.querySelector("[data-on-count]");
    const rest = document.querySelector("[data-off-count]");
    if (rest)
      rest.textContent = Number(rest.textContent) + Number(before.textContent) - on;
    before.textContent = on;
    document.getElementById("agent-no-tools").hidden = used.rows.length > 0;
  }
  document.getElementById("agent-tools").addEventListener("change", (event) => {
    const row = event.target.closest("tr[data-find]");
    if (!row) return;
    // A search does not hide what was just added. Only what is used is sent.
    if (isOn(row)) row.dataset.kept = "";
    else delete row.dataset.kept;
    if (row.closest("dialog")) event.target.name = isOn(row) ? nameOf(row) : "";
    count();
  });
  if (!dialog) return;
  const search = dialog.querySelector("[data-filter]");
  const groups = dialog.querySelector("[data-library-group]");
  const filter = () => search.dispatchEvent(new Event("input", { bubbles: true }));
  let isLoaded = Boolean(dialog.querySelector("table"));

  async function load() {
    isLoaded = true;
    await htmx.ajax("GET", dialog.dataset.url, {
      target: "#agent-library-rows",
      swap: "outerHTML",
    });
    isLoaded = Boolean(dialog.querySelector("table"));
    prepare();
  }

  function prepare() {
    // What this page added before it was saved is in the table of the page.
    for (const row of dialog.querySelectorAll("tr[data-find]"))
      if (used.querySelector(`#${row.id}`)) row.remove();
      else if (!isOn(row)) row.querySelector("select").name = "";
    const labels = [...dialog.querySelectorAll("[data-group]")].map((group) => {
      const count = group.querySelectorAll("tr[data-find]").length;
      return new Option(`${group.dataset.group} ${count}`, group.dataset.group);
    });
    groups.replaceChildren(groups.options[0], ...labels);
    filter();
  }

  async function open() {
    dialog.showModal();
    search.focus();
    if (isLoaded) prepare();
    else await load();
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-library]");
    if (opener) {
      event.preventDefault();
      open();
    }
    if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
  });
  groups.addEventListener("change", (event) => {
    event.stopPropagation(); // a filter is no change of the agent
    filter();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // does not create the agent
    if (event.key !== "Escape") return;
    event.preventDefault(); // else the first press only leaves the field
    event.stopPropagation();
    dialog.close();
  });
  // Added rows join those of the page once the dialog no longer shows them.
  dialog.addEventListener("close", () => {
    for (const row of dialog.querySelectorAll("tr[data-find]")) {
      if (!isOn(row)) continue;
      row.hidden = false;
      used.append(row);
    }
    count();
  });
  if (isLoaded) open();
})();
