// The editor of a tool's Python code: colors, line numbers, and the line of an error.
// In a shadow root its styles need no exception from the page's security policy.
import {
  Decoration,
  EditorState,
  EditorView,
  ViewPlugin,
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  highlightSpecialChars,
  history,
  historyKeymap,
  keymap,
  lineNumbers,
} from "./vendor/codemirror.min.js";
import { look, replaceSelection } from "./editor_look.js";

const INDENT = "    ";
const KEYWORDS =
  "and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|" +
  "finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|" +
  "return|True|try|while|with|yield";
const TOKEN = new RegExp(
  [
    /(?<comment>#.*)/,
    /(?<string>[bfruBFRU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<=\b(?:def|class)\s+)(?<defined>[\p{L}_][\p{L}\p{N}_]*)/u,
    new RegExp(`(?<keyword>\\b(?:${KEYWORDS})\\b)`),
    /(?<number>\b\d[\d_.xboa-fA-FeEjJ]*)/,
    /[\p{L}_][\p{L}\p{N}_]*/u,
  ]
    .map((one) => one.source)
    .join("|"),
  "gu",
);
const marks = Object.fromEntries(
  ["comment", "string", "defined", "keyword", "number"].map((name) => [
    name,
    Decoration.mark({ class: name }),
  ]),
);

function colorsOf(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const name = Object.keys(marks).find((one) => match.groups[one] !== undefined);
    if (name) found.push(marks[name].range(match.index, match.index + match[0].length));
  }
  return Decoration.set(found);
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

function mount(area) {
  const frame = document.createElement("div");
  frame.className = "editor";
  const host = document.createElement("div");
  host.className = "editor-host";
  const footer = document.createElement("footer");
  footer.textContent = gettext("Tab indents. Escape, then Tab leaves the editor.");
  frame.append(host, footer);
  area.before(frame);
  area.hidden = true;
  const shown = Number(new URLSearchParams(location.search).get("line"));
  const wrong = Number(area.dataset.errorLine) || shown;
  const words = (area.dataset.errorText ?? "").replace(/^Line \d+: /, "");
  const error = markLine(wrong, words);
  const view = new EditorView({
    parent: host.attachShadow({ mode: "open" }),
    root: host.shadowRoot,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        closeBrackets(),
        autocompletion({ override: [completions(area)], icons: false }),
        colors,
        error.plugin,
        look,
        replaceSelection,
        EditorState.tabSize.of(INDENT.length),
        EditorView.contentAttributes.of({
          "aria-label": area.labels?.[0]?.firstChild.textContent.trim() ?? "",
          "aria-describedby": area.getAttribute("aria-describedby") ?? "",
          tabindex: "0", // long lines make the editor scroll
          spellcheck: "false",
          autocorrect: "off",
          autocapitalize: "off",
        }),
        keymap.of([
          { key: "Tab", run: acceptCompletion },
          ...completionKeymap,
          { key: "Tab", run: indent, shift: dedent },
          { key: "Enter", run: newLine },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          area.value = update.state.doc.toString();
          area.dispatchEvent(new Event("input", { bubbles: true }));
        }),
      ],
    }),
  });
  // Keep keys typed here away from the shortcuts of the page.
  host.addEventListener("keydown", (event) => event.stopPropagation());
  area.labels?.[0]?.addEventListener("click", (event) => {
    event.preventDefault();
    view.focus();
  });
  area.addEventListener("editor:error", ({ detail }) => {
    error.mark(view, detail.line, detail.text);
    if (detail.line < 1 || detail.line > view.state.doc.lines) return;
    const { from } = view.state.doc.line(detail.line);
    view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "center" }) });
  });
  area.addEventListener("editor:replace", ({ detail }) => {
    const changes = { from: 0, to: view.state.doc.length, insert: detail };
    view.dispatch({ changes });
    view.focus();
  });
  if (wrong >= 1 && wrong <= view.state.doc.lines) {
    const { from } = view.state.doc.line(wrong);
    view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    view.focus();
  }
}

document.querySelectorAll("textarea[data-code]").forEach(mount);
