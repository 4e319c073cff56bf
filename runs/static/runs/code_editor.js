// The code of Python tools in colors; the editor is loaded on the first use, and when
// a line must be marked.
import { findColors } from "./code_colors.js";
import { frameField } from "./editor_frame.js";

const openEditor = async () => (await import("./code_editor_view.js")).createView;

function mount(area) {
  const { footer, open, signal } = frameField(area, { openEditor, findColors });
  footer.textContent = gettext("Tab indents. Escape, then Tab leaves the editor.");

  async function showError(detail, options) {
    if (detail.line >= 1 && (await open(options)))
      area.dispatchEvent(new CustomEvent("editor:error", { detail }));
  }
  area.addEventListener("editor:error", ({ detail }) => showError(detail), { signal });
  const shown = Number(new URLSearchParams(location.search).get("line"));
  const line = Number(area.dataset.errorLine) || shown;
  if (line < 1) return;
  const before = area.value.split("\n").slice(0, line - 1);
  const start = before.join("\n").length + (before.length > 0 ? 1 : 0);
  area.setSelectionRange(start, start);
  const text = (area.dataset.errorText ?? "").replace(/^Line \d+: /, "");
  showError({ line, text }, { isFocusWanted: true });
}

document.querySelectorAll("textarea[data-code]").forEach(mount);
