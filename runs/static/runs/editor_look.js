// How the editors of instructions and of code look; their colors are design tokens.
import { EditorView } from "./vendor/codemirror.min.js";

export const look = EditorView.theme({
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
export const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    if (event.inputType !== "insertText" || !event.data) return false;
    if (state.selection.main.empty || /[([{'"]/.test(event.data)) return false;
    event.preventDefault();
    view.dispatch(state.replaceSelection(event.data), { userEvent: "input.type" });
    return true;
  },
});
