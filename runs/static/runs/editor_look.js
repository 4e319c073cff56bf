// What the editors of instructions and of code share: how they look, by design tokens,
// and how they stand for a text field. In a shadow root their styles need no exception
// from the page's security policy.
import {
  EditorState,
  EditorView,
  acceptCompletion,
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

const look = EditorView.theme({
  "&": {
    fontSize: ".75rem",
    color: "var(--ink)",
    backgroundColor: "var(--surface)",
    borderRadius: "5px",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    font: "400 var(--editor-text)/1.65 var(--mono)",
    minHeight: "9rem",
    maxHeight: "28rem",
    overflow: "auto",
  },
  ".cm-content": { padding: ".5rem 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 .75rem 0 .375rem" },
  ".cm-gutters": {
    backgroundColor: "transparent",
    color: "var(--ink-3)",
    border: "0",
    paddingInlineStart: ".25rem",
  },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--live-line)" },
  ".v": {
    color: "var(--live)",
    backgroundColor: "var(--live-soft)",
    borderRadius: "3px",
  },
  ".wrong": {
    backgroundColor: "var(--bad-soft)",
    boxShadow: "inset 3px 0 var(--bad-fill)",
  },
  ".wrong[data-error]::after": {
    content: "attr(data-error)",
    display: "block",
    font: "500 .75rem/1.5 var(--sans)",
    color: "var(--bad)",
    whiteSpace: "pre-wrap",
  },
  ".keyword": { color: "var(--model)" },
  ".string": { color: "var(--good)" },
  ".number": { color: "var(--live)" },
  ".comment": { color: "var(--ink-3)", fontStyle: "italic" },
  ".defined": { color: "var(--tool)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line-2)",
    borderRadius: "6px",
    boxShadow: "var(--pop)",
  },
  ".cm-tooltip-autocomplete > ul": {
    font: "400 .75rem/1.6 var(--mono)",
    maxHeight: "12rem",
  },
  ".cm-tooltip-autocomplete > ul > li": { padding: ".125rem .5rem" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--live-soft)",
    color: "var(--ink)",
  },
  ".cm-completionIcon": { display: "none" },
  ".cm-completionDetail": {
    fontFamily: "var(--sans)",
    fontStyle: "normal",
    color: "var(--ink-3)",
    marginLeft: "1rem",
  },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-diagnostic": {
    padding: ".25rem .5rem",
    font: "400 .75rem/1.5 var(--sans)",
    borderLeft: "0",
  },
  ".cm-lintRange-error, .cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad-fill)",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-warning": { textDecorationColor: "var(--need-fill)" },
});

// Chromium replaces a selection with styled text, which the page's security policy
// refuses; so the editor replaces it itself. Brackets surround a selection instead.
const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    if (event.inputType !== "insertText" || !event.data) return false;
    if (state.selection.main.empty || /[([{'"]/.test(event.data)) return false;
    event.preventDefault();
    view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type" });
    return true;
  },
});

// Return an editor of the text field `area`, inside `host`, with what is its own:
// `extensions`, `keys` and `attributes` of its text.
export function createEditor(area, host, { extensions, keys, attributes }) {
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
        ...extensions,
        look,
        replaceSelection,
        EditorView.contentAttributes.of(attributes),
        keymap.of([
          { key: "Tab", run: acceptCompletion },
          ...completionKeymap,
          ...keys,
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
        ]),
        EditorView.updateListener.of((update) => {
          const text = update.state.doc.toString();
          if (!update.docChanged || text === area.value) return;
          area.value = text;
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
  area.addEventListener("editor:replace", ({ detail }) => {
    const changes = {
      from: 0,
      to: view.state.doc.length,
      insert: detail ?? area.value,
    };
    view.dispatch({ changes });
    view.focus();
  });
  return view;
}
