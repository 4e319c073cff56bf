// The editor of a tool's Python code: colors, completions, indents, the line of an error.
import { createEditor } from "./editor_field.js";

const INDENT = "    ";
const KEYWORDS =
  "and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|" +
  "finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|" +
  "return|True|try|while|with|yield";
const BUILTINS =
  "abs|all|any|bool|bytes|chr|dict|divmod|enumerate|filter|float|frozenset|int|" +
  "isinstance|len|list|map|max|min|ord|pow|print|range|repr|reversed|round|set|" +
  "sorted|str|sum|tuple|type|zip|Exception|KeyError|TypeError|ValueError";
const METHODS =
  "append|count|endswith|extend|find|format|get|index|items|join|keys|lower|lstrip|" +
  "partition|pop|replace|rstrip|sort|split|splitlines|startswith|strip|title|update|" +
  "upper|values";
const TOKEN = new RegExp(
  [
    /(?<comment>#.*)/,
    /(?<string>[bfruBFRU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?))/,
    /(?<=\b(?:def|class)\s+)(?<defined>[\p{L}_][\p{L}\p{N}_]*)/u,
    new RegExp(`(?<keyword>\\b(?:${KEYWORDS})\\b)`),
    /(?<number>\b\d[\d_.xboa-fA-FeEjJ]*)/,
    /[\p{L}_][\p{L}\p{N}_]*/u,
  ]
    .map((one) => one.source)
    .join("|"),
  "gu",
);
const COLORS = ["comment", "string", "defined", "keyword", "number"];

function* findColors(text) {
  for (const { groups, index, 0: token } of text.matchAll(TOKEN)) {
    const name = COLORS.find((one) => groups[one] !== undefined);
    if (name) yield { from: index, to: index + token.length, name };
  }
}

// Whether a string has its closing quotes; findColors ends an open one at its line or,
// with three quotes, at the end of the text.
const CLOSED =
  /^[bfru]{0,2}(?:"""[\s\S]*"""|'''[\s\S]*'''|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*')$/i;

function isInText(text, place) {
  for (const { from, to, name } of findColors(text)) {
    if (from >= place) return false;
    if (to < place || !["comment", "string"].includes(name)) continue;
    if (to > place || name === "comment") return true;
    return !CLOSED.test(text.slice(from, to));
  }
  return false;
}

// The arguments of the tool are variables of its code.
function argumentNames(area) {
  const rows = [...(area.form?.querySelectorAll(".schema-name input") ?? [])];
  const names = rows.map((row) => row.value).filter(Boolean);
  return rows.length > 0 ? names : ["input"];
}

// Completes variables, what Python has built in, methods after a dot, and modules, but
// nothing in comments and strings.
const completions = (area) => (text, place, isAsked) => {
  const typed = /[\p{L}_][\p{L}\p{N}_]*$/u.exec(text.slice(0, place))?.[0] ?? "";
  const from = place - typed.length;
  const before = text.slice(text.lastIndexOf("\n", from - 1) + 1, from);
  const isModule = /^\s*(import|from)\s+$/.test(before);
  if (typed.length < 2 && !isModule && !isAsked) return null;
  if (isInText(text, place)) return null;
  const options = new Map();
  const offer = (names, detail) => {
    for (const label of names)
      if (!options.has(label)) options.set(label, { label, detail });
  };
  if (isModule) offer(area.dataset.modules?.split(" ") ?? [], gettext("module"));
  else if (/\.\s*$/.test(before)) offer(METHODS.split("|"), gettext("method"));
  else {
    const others = `${text.slice(0, from)} ${text.slice(place)}`;
    offer(argumentNames(area), gettext("argument"));
    offer(KEYWORDS.split("|"), gettext("keyword"));
    offer(BUILTINS.split("|"), gettext("built-in"));
    offer(others.match(/[\p{L}_][\p{L}\p{N}_]+/gu) ?? []);
  }
  return { from, options: [...options.values()] };
};

// Shows where the caret is and how many lines there are.
function describe([place, size], { value, selectionEnd }) {
  const locale = document.documentElement.lang;
  const before = value.slice(0, selectionEnd).split("\n");
  const column = [...before.at(-1)].length + 1;
  const count = value.split("\n").length;
  place.textContent = interpolate(
    gettext("Line %(line)s, column %(column)s"),
    {
      line: before.length.toLocaleString(locale),
      column: column.toLocaleString(locale),
    },
    true,
  );
  size.textContent = interpolate(
    ngettext("%(count)s line", "%(count)s lines", count),
    { count: count.toLocaleString(locale) },
    true,
  );
}

function mount(area) {
  const editor = createEditor(area, {
    findColors,
    complete: completions(area),
    keys: { Tab: ({ shiftKey }) => (shiftKey ? dedent() : indent()), Enter: newLine },
    onMark: sayProblem,
  });
  editor.footer.innerHTML =
    '<span class="problem" role="status"></span>' +
    '<span class="num"></span><span class="num"></span><span class="end"></span>';
  editor.footer.lastChild.textContent = gettext(
    "Tab indents. Escape, then Tab leaves the editor.",
  );
  const [problem, ...places] = editor.footer.children;
  function sayProblem({ line, text }) {
    const values = { line, problem: text };
    problem.textContent =
      line > 0 && text
        ? interpolate(gettext("Line %(line)s: %(problem)s"), values, true)
        : "";
  }
  const update = () => describe(places, area);
  area.addEventListener("input", update);
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === area) update();
  });
  addEventListener("pageshow", update); // the browser restores typed text
  update();
  area.spellcheck = false;
  area.setAttribute("autocapitalize", "off");
  area.setAttribute("autocorrect", "off");

  // Where the lines of the selection begin and end, and what is in them.
  function chosenLines() {
    const { value, selectionStart, selectionEnd } = area;
    const from = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const end = value.indexOf("\n", selectionEnd);
    const to = end < 0 ? value.length : end;
    return { from, to, lines: value.slice(from, to).split("\n") };
  }
  function changeLines(change) {
    const { from, to, lines } = chosenLines();
    const { selectionStart: start, selectionEnd: end } = area;
    const changed = lines.map(change);
    const text = changed.join("\n");
    const first = changed[0].length - lines[0].length;
    const begin = Math.max(from, start + first);
    const last = Math.max(begin, end + text.length - (to - from));
    if (text !== lines.join("\n")) editor.edit(from, to, text, [begin, last]);
    return true;
  }
  const dedent = () => changeLines((line) => line.replace(/^ {1,4}/, ""));
  function indent() {
    const { selectionStart: start, selectionEnd: end } = area;
    if (start !== end) return changeLines((line) => INDENT + line);
    const spaces = INDENT.slice((start - chosenLines().from) % INDENT.length);
    editor.edit(start, start, spaces);
    return true;
  }
  // The next line is indented like this one, and after a colon deeper.
  function newLine({ shiftKey }) {
    if (shiftKey) return false;
    const { value, selectionStart: start, selectionEnd: end } = area;
    const written = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const deeper = /:\s*$/.test(written) ? INDENT : "";
    editor.edit(start, end, `\n${/^\s*/.exec(written)[0]}${deeper}`);
    return true;
  }

  const shown = Number(new URLSearchParams(location.search).get("line"));
  const line = Number(area.dataset.errorLine) || shown;
  if (line < 1) return;
  editor.goTo(line);
  editor.mark(line, (area.dataset.errorText ?? "").replace(/^Line \d+: /, ""));
}

document.querySelectorAll("textarea[data-code]").forEach(mount);
