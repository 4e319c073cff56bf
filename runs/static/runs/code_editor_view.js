// The editor of a tool's Python code, loaded by code_editor.js: colors, line numbers, and the line of an error.
import {
  Decoration,
  EditorState,
  EditorView,
  ViewPlugin,
  autocompletion,
} from "./vendor/codemirror.min.js";
import { KEYWORDS, findColors } from "./code_colors.js";
import { createEditor } from "./editor_look.js";

const INDENT = "    ";
const marks = new Map();

function markOf(name) {
  if (!marks.has(name)) marks.set(name, Decoration.mark({ class: name }));
  return marks.get(name);
}

function colorsOf(text) {
  const found = [...findColors(text)];
  return Decoration.set(
    found.map(({ from, to, name }) => markOf(name).range(from, to)),
  );
}

const colors = ViewPlugin.fromClass(
  class {
    constructor(view) {
      this.decorations = colorsOf(view.state.doc.toString());
    }
    update(change) {
      if (change.docChanged) this.decorations = colorsOf(change.state.doc.toString());
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

// The line of the last error, until it is changed. The message stands below the line;
// `mark` sets both, and an empty transaction shows them.
function markLine(number, message = "") {
  let wanted = { number, message };
  const plugin = ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.decorations = this.build(view.state.doc);
      }
      build(doc) {
        const { number: line, message: text } = wanted;
        wanted = null;
        if (line < 1 || line > doc.lines) return Decoration.none;
        const attributes = text ? { "data-error": text } : {};
        return Decoration.set([
          Decoration.line({ class: "wrong", attributes }).range(doc.line(line).from),
        ]);
      }
      update(change) {
        if (wanted) this.decorations = this.build(change.state.doc);
        if (!change.docChanged || this.decorations.size === 0) return;
        const marked = this.decorations.iter().from;
        let isEdited = false;
        change.changes.iterChangedRanges((from, to) => {
          const line = change.startState.doc.lineAt(marked);
          if (from <= line.to && to >= line.from) isEdited = true;
        });
        this.decorations = isEdited
          ? Decoration.none
          : this.decorations.map(change.changes);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
  const mark = (view, line, text) => {
    wanted = { number: line, message: text };
    view.dispatch({});
  };
  return { plugin, mark };
}

const BUILTINS =
  "abs|all|any|bool|bytes|chr|dict|divmod|enumerate|filter|float|frozenset|int|" +
  "isinstance|len|list|map|max|min|ord|pow|print|range|repr|reversed|round|set|" +
  "sorted|str|sum|tuple|type|zip|Exception|KeyError|TypeError|ValueError";
const METHODS =
  "append|count|endswith|extend|find|format|get|index|items|join|keys|lower|lstrip|" +
  "partition|pop|replace|rstrip|sort|split|splitlines|startswith|strip|title|update|" +
  "upper|values";

// The arguments of the tool are variables of its code.
function argumentNames(area) {
  const rows = [...(area.form?.querySelectorAll(".schema-name input") ?? [])];
  const names = rows.map((row) => row.value).filter(Boolean);
  return rows.length > 0 ? names : ["input"];
}

function isInText(state, position) {
  const before = state.doc.lineAt(position);
  const text = before.text.slice(0, position - before.from);
  const [quotes, isComment] = [text.match(/["']/g)?.length ?? 0, text.includes("#")];
  return quotes % 2 === 1 || isComment;
}

// Completes variables, what Python has built in, methods after a dot, and modules.
function completions(area) {
  return (context) => {
    const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*/u);
    const from = word?.from ?? context.pos;
    if (isInText(context.state, from)) return null;
    const line = context.state.doc.lineAt(from);
    const before = line.text.slice(0, from - line.from);
    const isMember = /\.\s*$/.test(before);
    const isModule = /^\s*(import|from)\s+$/.test(before);
    const isLong = word && word.to - word.from > 1;
    if (!isLong && !isModule && !context.explicit) return null;
    const text = context.state.doc.toString();
    const typed = word ? text.slice(word.from, word.to) : "";
    const own = [...new Set(text.match(/[\p{L}_][\p{L}\p{N}_]{2,}/gu) ?? [])].filter(
      (name) => name !== typed,
    );
    const options = new Map();
    const offer = (names, detail) => {
      for (const label of names)
        if (!options.has(label)) options.set(label, { label, detail });
    };
    if (isModule) offer(area.dataset.modules?.split(" ") ?? [], gettext("module"));
    else if (isMember) offer(METHODS.split("|"), gettext("method"));
    else {
      offer(argumentNames(area), gettext("argument"));
      offer(KEYWORDS.split("|"), gettext("keyword"));
      offer(BUILTINS.split("|"), gettext("built-in"));
      offer(own);
    }
    return { from, options: [...options.values()], validFor: /^[\p{L}\p{N}_]*$/u };
  };
}

function linesOf(state) {
  const { from, to } = state.selection.main;
  const lines = [];
  for (let n = state.doc.lineAt(from).number; n <= state.doc.lineAt(to).number; n += 1)
    lines.push(state.doc.line(n));
  return lines;
}

function indent(view) {
  const { main } = view.state.selection;
  if (main.empty) {
    const { from } = view.state.doc.lineAt(main.head);
    const spaces = INDENT.slice((main.head - from) % INDENT.length);
    view.dispatch(view.state.replaceSelection(spaces));
  } else
    view.dispatch({
      changes: linesOf(view.state).map(({ from }) => ({ from, insert: INDENT })),
    });
  return true;
}

function dedent(view) {
  const changes = linesOf(view.state).map((line) => ({
    from: line.from,
    to: line.from + /^ {0,4}/.exec(line.text)[0].length,
  }));
  view.dispatch({ changes });
  return true;
}

// After a colon, the next line is indented.
function newLine(view) {
  const { head, empty } = view.state.selection.main;
  const { from, text } = view.state.doc.lineAt(head);
  const written = text.slice(0, head - from);
  if (!empty || !/:\s*$/.test(written)) return false;
  const before = /^\s*/.exec(text)[0];
  view.dispatch(view.state.replaceSelection(`\n${before}${INDENT}`));
  return true;
}

// Return the editor of the text field `area`, inside `host`. The line `wrong` is marked.
export function createView(area, host) {
  const error = markLine(0);
  const view = createEditor(area, host, {
    extensions: [
      autocompletion({ override: [completions(area)], icons: false }),
      colors,
      error.plugin,
      EditorState.tabSize.of(INDENT.length),
    ],
    keys: [
      { key: "Tab", run: indent, shift: dedent },
      { key: "Enter", run: newLine },
    ],
    attributes: {
      "aria-label": area.labels?.[0]?.firstChild.textContent.trim() ?? "",
      "aria-describedby": area.getAttribute("aria-describedby") ?? "",
      tabindex: "0", // long lines make the editor scroll
      spellcheck: "false",
      autocorrect: "off",
      autocapitalize: "off",
    },
  });
  area.addEventListener("editor:error", ({ detail }) => {
    error.mark(view, detail.line, detail.text);
    if (detail.line < 1 || detail.line > view.state.doc.lines) return;
    const { from } = view.state.doc.line(detail.line);
    view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "center" }) });
  });
  area.addEventListener("editor:line", ({ detail }) => {
    if (detail >= 1 && detail <= view.state.doc.lines)
      view.dispatch({
        selection: { anchor: view.state.doc.line(detail).from },
        scrollIntoView: true,
      });
    view.focus();
  });
  return view;
}
