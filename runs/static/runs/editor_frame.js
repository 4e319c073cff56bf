// The frame of an editor: a text field that looks like the editor, which is a large
// script and is loaded when the field is used for the first time.

// `openEditor` loads the function that creates the editor; `findColors` yields what is
// colored in a text until then. `open` resolves to the view of the editor, or to null if
// it could not be loaded; `signal` is aborted once there is a view.
export function frameField(area, { openEditor, findColors, isWrapped }) {
  const frame = document.createElement("div");
  const field = document.createElement("div");
  const lines = document.createElement("div");
  const footer = document.createElement("footer");
  const waits = new AbortController();
  const { signal } = waits;
  frame.className = "editor";
  field.className = isWrapped ? "editor-field wrapped" : "editor-field";
  lines.className = "editor-lines";
  lines.setAttribute("aria-hidden", "true");

  const isFocused = document.activeElement === area;
  area.before(frame);
  field.append(lines, area);
  frame.append(field, footer);
  if (isFocused) area.focus({ preventScroll: true });

  function paint() {
    const shown = colorLines(area.value, findColors(area.value));
    frame.style.setProperty("--digits", String(shown.length).length);
    lines.replaceChildren(...shown);
  }

  // The pointer that gives the focus also selects: wait until it is released.
  let released = Promise.resolve();
  function waitForRelease() {
    released = new Promise((resolve) => {
      for (const name of ["pointerup", "pointercancel"])
        addEventListener(name, () => setTimeout(resolve), { once: true, signal });
    });
  }

  let isComposing = false;
  let opening = null;
  function open({ isFocusWanted = false } = {}) {
    opening ??= openView(isFocusWanted).catch(() => {
      opening = null; // the field works without an editor; its next use tries again
      return null;
    });
    return opening;
  }

  async function openView(isFocusWanted) {
    const create = await openEditor();
    await released;
    if (isComposing)
      await new Promise((resolve) => {
        area.addEventListener("compositionend", () => setTimeout(resolve), {
          once: true,
        });
      });
    const { selectionStart, selectionEnd, selectionDirection } = area;
    const { scrollTop, scrollLeft } = field;
    const hasFocus = isFocusWanted || document.activeElement === area;
    waits.abort();
    const host = document.createElement("div");
    host.className = "editor-host";
    field.before(host);
    const view = create(area, host);
    field.hidden = true;
    const isBackward = selectionDirection === "backward";
    view.dispatch({
      selection: {
        anchor: isBackward ? selectionEnd : selectionStart,
        head: isBackward ? selectionStart : selectionEnd,
      },
    });
    if (hasFocus) view.focus();
    view.coordsAtPos(0); // measures the lines now instead of after the first paint
    view.scrollDOM.scrollTo(scrollLeft, scrollTop);
    return view;
  }

  area.addEventListener("input", paint, { signal });
  addEventListener("pageshow", paint, { signal }); // the browser restores typed text
  area.addEventListener("pointerenter", () => openEditor().catch(() => {}), { signal });
  area.addEventListener("pointerdown", waitForRelease, { signal });
  area.addEventListener("focus", () => open(), { signal });
  for (const name of ["compositionstart", "compositionend"])
    area.addEventListener(name, ({ type }) => {
      isComposing = type === "compositionstart";
    });
  area.addEventListener(
    "editor:replace",
    ({ detail }) => {
      if (detail !== null) {
        area.value = detail;
        area.dispatchEvent(new Event("input", { bubbles: true }));
      } else paint();
      open({ isFocusWanted: true });
    },
    { signal },
  );
  paint();
  if (isFocused) open();
  return { frame, footer, open, signal };
}

// A line of the text is an element, and each color in it another.
function colorLines(text, colors) {
  const lines = [document.createElement("div")];
  function add(part, name) {
    part.split("\n").forEach((piece, number) => {
      if (number > 0) lines.push(document.createElement("div"));
      if (!piece) return;
      const shown = name ? document.createElement("span") : "";
      if (shown) {
        shown.className = name;
        shown.textContent = piece;
      }
      lines.at(-1).append(shown || piece);
    });
  }
  let done = 0;
  for (const { from, to, name } of colors) {
    add(text.slice(done, from));
    add(text.slice(from, to), name);
    done = to;
  }
  add(text.slice(done));
  return lines;
}
