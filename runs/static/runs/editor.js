// Prompts: their variables and size in words; the editor is loaded on the first use.
import { frameField } from "./editor_frame.js";
import { ENGINE, PIECE, variableNames } from "./prompt_variables.js";

const CHARACTERS_A_TOKEN = 4;

function* findColors(text) {
  for (const { index, 0: found, 1: variable } of text.matchAll(PIECE))
    if (variable) yield { from: index, to: index + found.length, name: "v" };
}

function describe(footer, text, whenEmpty) {
  const all = variableNames(text);
  const asked = all.filter((name) => !(name in ENGINE) || name === "input");
  const words = footer.querySelector("[data-words]");
  words.replaceChildren();
  const counted = interpolate(
    ngettext("%(count)s variable:", "%(count)s variables:", all.length),
    { count: all.length },
    true,
  );
  words.append(
    all.length === 0
      ? text.trim()
        ? gettext("No variables. Type { to add one")
        : whenEmpty
      : `${counted} `,
  );
  for (const name of all) {
    const one = document.createElement("b");
    one.className = "mono";
    one.textContent = name;
    one.title = asked.includes(name) ? gettext("input of each run") : ENGINE[name];
    words.append(one, " ");
  }
  const wide = [...text].filter((letter) => letter > "\u2e80").length;
  const tokens = Math.ceil((text.length - wide) / CHARACTERS_A_TOKEN) + wide;
  footer.querySelector("[data-tokens]").textContent = tokens
    ? interpolate(
        ngettext("about %(count)s token", "about %(count)s tokens", tokens),
        { count: tokens.toLocaleString(document.documentElement.lang) },
        true,
      )
    : "";
}

const openEditor = async () => (await import("./editor_view.js")).createView;

function mount(area) {
  const { frame, footer } = frameField(area, {
    openEditor,
    findColors,
    isWrapped: true,
  });
  const isSmall = area.closest("[data-editor]").dataset.editor === "small";
  frame.classList.toggle("small", isSmall);
  footer.innerHTML =
    '<span data-words></span><span class="end num" data-tokens></span>';
  const whenEmpty =
    area.dataset.empty || gettext("Leave empty to use the default prompt of the kind");
  const update = () => describe(footer, area.value, whenEmpty);
  area.addEventListener("input", update);
  addEventListener("pageshow", update);
  update();
}

document.querySelectorAll("[data-editor] textarea").forEach(mount);
