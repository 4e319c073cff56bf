// The editor of prompts: colors, completes and checks variables, and counts them below.
import { createEditor } from "./editor_field.js";

const ENGINE = {
  input: gettext("the question of the run"),
  tools: gettext("names and descriptions of the tools, filled in by the engine"),
  tool_names: gettext("names of the tools, filled in by the engine"),
  agent_scratchpad: gettext("the steps so far, filled in by the engine"),
  chat_history: gettext(
    "earlier messages of the conversation, filled in by the engine",
  ),
};
const PIECE = /\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]/g;
const CHARACTERS_A_TOKEN = 4;
const PAUSE_MS = 400; // before what may be half written is checked

// As runs/engine/prompts.py reads it.
const variableNames = (text) => [
  ...new Set([...text.matchAll(PIECE)].map((match) => match[1]).filter(Boolean)),
];

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next[j] = Math.min(
        row[j] + 1,
        next[j - 1] + 1,
        row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    row = next;
  }
  return row[b.length];
}

// Return the variable of the engine that `name` looks like, unless it is one.
const nearName = (name) =>
  name in ENGINE
    ? undefined
    : Object.keys(ENGINE).find(
        (one) =>
          distance(one, name.toLowerCase()) <= (one.length > 6 ? 2 : 1) + 1 &&
          one[0] === name[0].toLowerCase() &&
          Math.abs(one.length - name.length) <= 2,
      );

// Yield the variables, and with `isChecked` what is wrong.
function* findPieces(text, isChecked) {
  let isBraceOpen = false;
  for (const { index: from, 0: found, 1: name } of text.matchAll(PIECE)) {
    const to = from + found.length;
    if (name) {
      const near = isChecked && nearName(name);
      const message = near
        ? interpolate(
            gettext(
              "Did you mean {%(near)s}? Otherwise %(name)s is an input of each run.",
            ),
            { near, name },
            true,
          )
        : "";
      yield { from, to, name: near ? "v doubtful" : "v", message };
    } else if (found.length === 1 && isChecked) {
      const isClosing = isBraceOpen && found === "}";
      isBraceOpen = found === "{";
      if (isClosing) continue;
      const message = gettext(
        "Unbalanced brace. Write {name} for a variable, {{ and }} for literal braces.",
      );
      yield { from, to, name: "faulty", message };
    }
  }
}

function complete(text, place) {
  const word = /\{[A-Za-z0-9_]*$/.exec(text.slice(0, place));
  if (!word || text[word.index - 1] === "{") return null;
  const own = variableNames(text).filter((name) => !(name in ENGINE));
  const to = text[place] === "}" ? place + 1 : place;
  const all = [
    ...own.map((label) => [label, gettext("input of each run")]),
    ...Object.entries(ENGINE),
  ];
  return {
    from: word.index + 1,
    options: all.map(([label, detail]) => ({ label, detail, text: `${label}}`, to })),
  };
}

function describe(footer, text, whenEmpty) {
  const all = variableNames(text);
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
    one.title =
      name === "input" || !(name in ENGINE)
        ? gettext("input of each run")
        : ENGINE[name];
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

function mount(area) {
  let isChecked = true;
  let pause = 0;
  const findColors = (text) => findPieces(text, isChecked);
  const editor = createEditor(area, { findColors, complete, isWrapped: true });
  const { frame, footer } = editor;
  const isSmall = area.closest("[data-editor]").dataset.editor === "small";
  frame.classList.toggle("small", isSmall);
  footer.innerHTML =
    '<span data-words></span><span class="end num" data-tokens></span>' +
    '<span class="problem" role="status"></span>';
  const whenEmpty =
    area.dataset.empty || gettext("Leave empty to use the default prompt of the kind");
  function check() {
    isChecked = true;
    editor.paint();
    const problem = [...findPieces(area.value, true)].find(({ message }) => message);
    const line = area.value.slice(0, problem?.from ?? 0).split("\n").length;
    const says = footer.querySelector(".problem");
    says.classList.toggle("need", problem?.name !== "faulty");
    says.textContent = problem
      ? interpolate(
          gettext("Line %(line)s: %(problem)s"),
          { line, problem: problem.message },
          true,
        )
      : "";
  }
  function update() {
    describe(footer, area.value, whenEmpty);
    isChecked = false;
    clearTimeout(pause);
    pause = setTimeout(check, PAUSE_MS);
  }
  area.addEventListener("input", update, { capture: true }); // before it is drawn
  addEventListener("pageshow", () => describe(footer, area.value, whenEmpty));
  describe(footer, area.value, whenEmpty);
  check();
}

document.querySelectorAll("[data-editor] textarea").forEach(mount);
