// An editor is a text field over lines that show its text in colors. What changes the
// text does so as typing would, so that the browser can undo it.

// `findColors(text)` yields {from, to, name} in order. `complete(text, place, isAsked)`
// returns {from, options: [{label, detail, text, to}]} or null. `keys` acts on keys and
// returns whether it did. The result can edit the text, and mark a line; `onMark` is
// called with {line, text} when another one is marked, or it moves.
export function createEditor(
  area,
  { findColors, complete, isWrapped, keys = {}, onMark },
) {
  const make = (name, className) =>
    Object.assign(document.createElement(name), { className });
  const frame = make("div", "editor");
  const field = make("div", isWrapped ? "editor-field wrapped" : "editor-field");
  const lines = make("div", "editor-lines");
  const footer = make("footer", "");
  lines.setAttribute("aria-hidden", "true");

  const hasFocus = document.activeElement === area;
  area.before(frame);
  field.append(lines, area);
  frame.append(field, footer);
  if (hasFocus) area.focus({ preventScroll: true });

  // Lines: only those that changed are drawn again.
  let shown = [];
  let wrong = { line: 0, text: "" };
  function paint() {
    const parts = splitLines(area.value, findColors(area.value));
    const keysOf = parts.map((pieces) => JSON.stringify(pieces));
    const most = Math.min(shown.length, keysOf.length);
    let first = 0;
    while (first < most && shown[first] === keysOf[first]) first += 1;
    let same = 0;
    while (same < most - first && shown.at(-1 - same) === keysOf.at(-1 - same))
      same += 1;
    const removed = [...lines.children].slice(first, shown.length - same);
    const added = parts.slice(first, parts.length - same).map(drawLine);
    const after = lines.children[shown.length - same] ?? null;
    for (const line of removed) line.remove();
    const drawn = document.createDocumentFragment();
    drawn.append(...added);
    lines.insertBefore(drawn, after);
    if (wrong.line > shown.length - same) {
      wrong.line += added.length - removed.length;
      onMark?.(wrong);
    } else if (wrong.line > first) mark(0); // the marked line was changed
    shown = keysOf;
    frame.style.setProperty("--digits", String(shown.length).length);
    area.scrollTop = 0;
  }

  function mark(line, text = "") {
    lines.querySelector(".wrong")?.classList.remove("wrong");
    wrong = { line, text };
    const marked = lines.children[line - 1];
    onMark?.(wrong);
    if (!marked) return;
    marked.classList.add("wrong");
    marked.scrollIntoView({ block: "nearest" });
  }

  // Where a place of the text is drawn.
  function rectOf(place) {
    const before = area.value.slice(0, place).split("\n");
    const line = lines.children[before.length - 1];
    const range = document.createRange();
    range.setStart(line, 0);
    let left = before.at(-1).length;
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      range.setStart(node, Math.min(left, node.length));
      if (left <= node.length) break;
      left -= node.length;
    }
    range.collapse(true);
    const rect = range.getClientRects()[0];
    if (rect) return rect;
    const { top, bottom, left: side } = line.getBoundingClientRect();
    const gutter = parseFloat(getComputedStyle(line).paddingInlineStart);
    return { top, bottom, left: side + gutter };
  }

  const MARGIN = 8; // pixels between the caret and the edge
  function reveal(place = area.selectionEnd) {
    const caret = rectOf(place);
    const box = field.getBoundingClientRect();
    const start = isWrapped ? 0 : parseFloat(getComputedStyle(area).paddingInlineStart);
    if (caret.top < box.top) field.scrollTop -= box.top - caret.top + MARGIN;
    else if (caret.bottom > box.bottom)
      field.scrollTop += caret.bottom - box.bottom + MARGIN;
    if (caret.left < box.left + start)
      field.scrollLeft -= box.left + start - caret.left + MARGIN;
    else if (caret.left > box.right - MARGIN)
      field.scrollLeft += caret.left - box.right + 3 * MARGIN;
  }

  function edit(from, to, text, [anchor, head] = [from + text.length]) {
    area.focus({ preventScroll: true });
    area.setSelectionRange(from, to);
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
      area.setRangeText(text, from, to, "end");
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }
    area.setSelectionRange(anchor, head ?? anchor);
    reveal();
  }

  function goTo(line) {
    area.focus({ preventScroll: true });
    if (line < 1 || line > shown.length) return;
    const start = area.value.split("\n", line - 1).join("\n").length + (line > 1);
    area.setSelectionRange(start, start);
    lines.children[line - 1].scrollIntoView({ block: "nearest" });
  }

  const options = createOptions(area, { complete, edit, rectOf });
  let isLeaving = false; // Escape, then Tab leaves the field
  area.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const isDone = options.press(event);
    const leaves = isLeaving;
    isLeaving = event.key === "Escape" && !isDone;
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const act = isPlain && !(leaves && event.key === "Tab") ? keys[event.key] : null;
    if (!isDone && !act?.(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  area.addEventListener("input", () => {
    paint();
    if (document.activeElement === area) reveal();
    options.refresh();
  });
  addEventListener("pageshow", paint); // the browser restores typed text
  area.addEventListener("editor:replace", ({ detail }) => {
    if (detail !== null) edit(0, area.value.length, detail, [0]);
    else paint();
    options.close();
    area.focus();
  });
  area.addEventListener("editor:error", ({ detail }) => mark(detail.line, detail.text));
  area.addEventListener("editor:line", ({ detail }) => goTo(detail));
  paint();
  return { frame, footer, edit, goTo, mark, paint };
}

// Return the pieces of each line: a text, or a text with its color.
function splitLines(text, colors) {
  const lines = [[]];
  const add = (part, name) =>
    part.split("\n").forEach((piece, number) => {
      if (number > 0) lines.push([]);
      if (piece) lines.at(-1).push(name ? [piece, name] : piece);
    });
  let done = 0;
  for (const { from, to, name } of colors) {
    add(text.slice(done, from));
    add(text.slice(from, to), name);
    done = to;
  }
  add(text.slice(done));
  return lines;
}

function drawLine(pieces) {
  const line = document.createElement("div");
  for (const piece of pieces) {
    if (typeof piece === "string") {
      line.append(piece);
      continue;
    }
    const colored = document.createElement("span");
    [colored.textContent, colored.className] = piece;
    line.append(colored);
  }
  return line;
}

// The list of what can complete the word at the caret. Tab accepts; Enter only does so
// if the person asked for the list or moved in it, otherwise it is a line break.
let lists = 0;
function createOptions(area, { complete, edit, rectOf }) {
  const list = document.createElement("ul");
  list.className = "editor-options";
  list.role = "listbox";
  list.id = `editor-options-${++lists}`;
  list.ariaLabel = gettext("Completions");
  list.popover = "manual";
  area.after(list);
  area.setAttribute("aria-autocomplete", "list");
  let found = [];
  let from = 0;
  let isTyped = false;
  let isAsked = false;
  let hasMoved = false;

  const isOpen = () => found.length > 0;
  function close() {
    found = [];
    isAsked = false;
    hasMoved = false;
    list.hidePopover();
    area.removeAttribute("aria-controls");
    area.removeAttribute("aria-activedescendant");
  }
  function select(place) {
    [...list.children].forEach((one, number) => {
      one.ariaSelected = String(number === place);
    });
    const chosen = list.children[place];
    chosen.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", chosen.id);
  }
  const selected = () =>
    [...list.children].findIndex((one) => one.ariaSelected === "true");
  function move(by) {
    hasMoved = true;
    select((selected() + by + found.length) % found.length);
  }
  function accept(place) {
    const { label, text = label, to = area.selectionEnd } = found[place];
    isTyped = false;
    edit(from, to, text);
    close();
  }
  function open({ isWanted, isWholeShown = false }) {
    const place = area.selectionStart;
    const answer =
      place === area.selectionEnd ? complete(area.value, place, isWanted) : null;
    const typed = answer ? area.value.slice(answer.from, place) : "";
    const matches = (answer?.options ?? []).filter(({ label }) =>
      label.toLowerCase().startsWith(typed.toLowerCase()),
    );
    const isWhole = matches.some(({ label }) => label === typed);
    if (matches.length === (isWhole ? 1 : 0) || (isWhole && !isWholeShown))
      return close();
    found = matches;
    from = answer.from;
    isAsked = isWanted;
    hasMoved = false;
    list.replaceChildren(
      ...matches.map(({ label, detail }, number) => {
        const option = document.createElement("li");
        option.role = "option";
        option.id = `${list.id}-${number}`;
        option.append(label);
        if (detail) option.append(document.createElement("small"));
        if (detail) option.lastChild.textContent = detail;
        return option;
      }),
    );
    list.showPopover();
    area.setAttribute("aria-controls", list.id);
    select(0);
    const caret = rectOf(from);
    const isAbove = caret.bottom + list.offsetHeight > innerHeight;
    const left = Math.min(caret.left, innerWidth - list.offsetWidth - 8);
    list.style.left = `${Math.max(8, left)}px`;
    list.style.top = `${isAbove ? caret.top - list.offsetHeight : caret.bottom}px`;
  }
  function press(event) {
    if (event.key === " " && event.ctrlKey) {
      open({ isWanted: true, isWholeShown: true });
      return true;
    }
    isTyped = event.key.length === 1 || event.key === "Backspace";
    if (!isOpen() || event.shiftKey) return false;
    const act = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: isAsked || hasMoved ? () => accept(selected()) : null,
      Tab: () => accept(selected()),
      Escape: close,
    }[event.key];
    if (act) act();
    else if (!isTyped) close();
    return Boolean(act);
  }

  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) accept([...list.children].indexOf(option));
  });
  area.addEventListener("blur", close);
  area.addEventListener("pointerdown", close);
  area.parentElement.addEventListener("scroll", () => isOpen() && close());
  // A list that was asked for stays one while its word is typed.
  function refresh() {
    if (!isTyped) return close();
    const word = area.value.slice(from, area.selectionStart);
    open({ isWanted: isAsked && /^[\p{L}\p{N}_]+$/u.test(word) });
  }
  return { close, press, refresh };
}
