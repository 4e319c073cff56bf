// The editor of a prompt, loaded by editor.js: colors, completes and checks variables.
import {
  Decoration,
  EditorView,
  MatchDecorator,
  ViewPlugin,
  autocompletion,
  lintKeymap,
  linter,
} from "./vendor/codemirror.min.js";
import { createEditor } from "./editor_look.js";
import { ENGINE, PIECE, variableNames } from "./prompt_variables.js";

const variable = new MatchDecorator({
  regexp: new RegExp(PIECE),
  decoration: (match) =>
    match[1] === undefined ? null : Decoration.mark({ class: "v" }),
});
const variables = ViewPlugin.fromClass(
  class {
    constructor(view) {
      this.decorations = variable.createDeco(view);
    }
    update(change) {
      this.decorations = variable.updateDeco(change, this.decorations);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

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

const check = linter(
  (view) => {
    const text = view.state.doc.toString();
    const found = [];
    let open = false;
    for (const match of text.matchAll(PIECE)) {
      const from = match.index;
      const to = from + match[0].length;
      if (match[1]) {
        const near =
          !(match[1] in ENGINE) &&
          Object.keys(ENGINE).find(
            (one) =>
              distance(one, match[1].toLowerCase()) <= (one.length > 6 ? 2 : 1) + 1 &&
              one[0] === match[1][0].toLowerCase() &&
              Math.abs(one.length - match[1].length) <= 2,
          );
        if (near)
          found.push({
            from,
            to,
            severity: "warning",
            message: interpolate(
              gettext(
                "Did you mean {%(near)s}? Otherwise %(name)s is an input of each run.",
              ),
              { near, name: match[1] },
              true,
            ),
          });
        continue;
      }
      if (open && match[0] === "}") {
        open = false;
        continue;
      }
      if (match[0] === "{" || match[0] === "}") {
        open = match[0] === "{";
        found.push({
          from,
          to,
          severity: "error",
          message: gettext(
            "Unbalanced brace. Write {name} for a variable, {{ and }} for literal braces.",
          ),
        });
      }
    }
    return found;
  },
  { delay: 400 },
);

function complete(context) {
  const word = context.matchBefore(/\{[A-Za-z0-9_]*/);
  if (
    !word ||
    (word.from > 0 && context.state.sliceDoc(word.from - 1, word.from) === "{")
  )
    return null;
  const mine = variableNames(context.state.doc.toString()).filter(
    (name) => !(name in ENGINE),
  );
  const after = context.state.sliceDoc(context.pos, context.pos + 1) === "}" ? "" : "}";
  const option = (label, detail, boost) => ({
    label,
    detail,
    boost,
    type: "variable",
    apply: (view, _option, from, to) => {
      const end = after ? to : to + 1;
      view.dispatch({
        changes: { from, to: end, insert: `${label}}` },
        selection: { anchor: from + label.length + 1 },
      });
    },
  });
  return {
    from: word.from + 1,
    options: [
      ...mine.map((name) => option(name, gettext("input of each run"), 2)),
      ...Object.entries(ENGINE).map(([name, why]) =>
        option(name, why, name === "input" ? 1 : 0),
      ),
    ],
    validFor: /^[A-Za-z0-9_]*$/,
  };
}

const low = EditorView.theme({ ".cm-scroller": { minHeight: "2.5rem" } });

// Return the editor of the text field `area`, inside `host`.
export function createView(area, host) {
  const isSmall = area.closest("[data-editor]").dataset.editor === "small";
  return createEditor(area, host, {
    extensions: [
      EditorView.lineWrapping,
      autocompletion({ override: [complete], icons: false, interactionDelay: 0 }),
      check,
      variables,
      ...(isSmall ? [low] : []),
    ],
    keys: lintKeymap,
    attributes: {
      "aria-label": area.labels?.[0]?.textContent.trim() || gettext("Instructions"),
      spellcheck: "true",
      autocorrect: "on",
    },
  });
}
