// The chat: the box has the focus, the end of the conversation stays visible, keys.
(() => {
  "use strict";
  const box = document.querySelector("[data-follow]");
  const end = () => {
    box.scrollTop = box.scrollHeight;
  };
  if (box) {
    end();
    new MutationObserver(() => {
      if (!("isLeft" in box.dataset)) end();
    }).observe(box, { childList: true, subtree: true, characterData: true });
    if (location.hash)
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  // The box has the focus on each page of a conversation, so that one can write on.
  // A touch screen would cover the page with its keyboard.
  const input = document.querySelector("#chat-form [name=input]");
  if (!location.hash && matchMedia("(hover: hover)").matches)
    input?.focus({ preventScroll: true });

  // While an answer is written, Stop is in the place of Send, and Enter keeps the text.
  const stop = document.querySelector("#chat-form [data-stop]");
  const isBusy = () => stop && !stop.hidden;
  document.addEventListener(
    "submit",
    (event) => {
      if (event.target.id !== "chat-form" || !isBusy()) return;
      event.preventDefault();
      event.stopPropagation(); // else drafts.js deletes the draft
    },
    true,
  );

  // What is typed while a message is on its way goes on to the page that answers.
  const TYPED = "chat-typed";
  let sent = null;
  document.addEventListener("submit", (event) => {
    if (event.target.id === "chat-form" && !event.defaultPrevented) sent = input.value;
  });
  // A message is sent in the background: without a connection, the page and its text stay.
  const unsent = document.getElementById("chat-unsent");
  document.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    const isMessage = unsent && form.querySelector("[enterkeyhint=send]");
    if (event.defaultPrevented || !isMessage || "asPage" in form.dataset) return;
    event.preventDefault();
    const body = new FormData(form, submitter);
    form.querySelector(".unsent")?.remove();
    let answer;
    try {
      answer = await fetch(form.action, {
        method: "POST",
        body,
        headers: { "HX-Request": "true" },
      });
    } catch {
      keepText(form, submitter);
      form.prepend(unsent.content.cloneNode(true));
      return;
    }
    const page = answer.headers.get("HX-Redirect");
    if (page) {
      clearSent();
      return location.assign(page);
    }
    const signIn = new URL(answer.url);
    if (answer.redirected && signIn.searchParams.has("next")) {
      keepText(form, submitter);
      if (form.matches(".edit-turn form")) moveToBox(form);
      signIn.searchParams.set("next", list?.dataset.page ?? input.dataset.draft);
      return location.assign(signIn);
    }
    // Refused: the answer is a page, with the reasons.
    delete form.dataset.sent;
    form.dataset.asPage = "";
    form.requestSubmit(submitter?.isConnected ? submitter : null);
  });
  // Back shows the box as it was left: without what was sent.
  function clearSent() {
    if (sent === null) return;
    if (input.value.startsWith(sent)) input.value = input.value.slice(sent.length);
    sent = "";
  }
  function keepText(form, submitter) {
    const field = form.querySelector("[name=input]");
    sent = null;
    delete form.dataset.sent;
    field.value ||= submitter?.name === "suggestion" ? submitter.value : "";
    field.dispatchEvent(new Event("input", { bubbles: true })); // a draft again
  }
  // An edited message has no draft of its own.
  function moveToBox(form) {
    const text = form.querySelector("[name=input]").value;
    if (!input || !text) return;
    input.value = [input.value, text].filter(Boolean).join("\n\n");
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }
  addEventListener("pagehide", () => {
    if (sent === null || input.value === sent) return;
    const isMore = input.value.startsWith(sent);
    sessionStorage.setItem(TYPED, input.value.slice(isMore ? sent.length : 0));
    if (!sent) input.value = "";
  });
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) sent = null;
  });
  document.addEventListener("submit", ({ target }) => {
    if (target.matches("[data-keeps-typed]") && input?.value)
      sessionStorage.setItem(TYPED, input.value);
  });
  const typed = sessionStorage.getItem(TYPED);
  sessionStorage.removeItem(TYPED);
  if (typed && input && !input.value) {
    input.value = typed;
    input.dispatchEvent(new Event("input", { bubbles: true })); // a draft from now on
  }

  // What is edited in place opens with the focus in its field; Cancel and Escape close it
  // and restore the text.
  const EDITS = ".edit-turn, .rename";
  document.addEventListener(
    "toggle",
    (event) => {
      if (!event.target.matches(EDITS) || !event.target.open) return;
      const field = event.target.querySelector("textarea, input:not([type=hidden])");
      field.focus();
      field.setSelectionRange(field.value.length, field.value.length);
    },
    true,
  );
  document.addEventListener("reset", (event) => {
    const edit = event.target.closest(EDITS);
    if (!edit) return;
    edit.open = false;
    edit.querySelector("summary").focus();
  });

  // Before the keys of all pages, which close the menus.
  addEventListener(
    "keydown",
    (event) => {
      const keys = {
        Escape: () => cancel(event.target),
        ArrowUp: () => editLast(event.target),
        o: () => event.ctrlKey && !event.shiftKey && begin(),
      };
      if (!event.isComposing && keys[event.key]?.()) event.preventDefault();
    },
    true,
  );
  function cancel(target) {
    const edit = target.closest?.("details[open]:is(.edit-turn, .rename)");
    if (edit) {
      edit.querySelector("form").reset();
      return true;
    }
    const isElsewhere =
      target.matches?.("input[type=search]") ||
      document.querySelector("details.menu[open], dialog[open]");
    if (isElsewhere || !isBusy()) return false;
    stop.click();
    return true;
  }
  function editLast(target) {
    if (target !== input || input.value) return false;
    const edit = [...document.querySelectorAll(".edit-turn")].at(-1);
    if (!edit) return false;
    edit.open = true;
    return true;
  }
  function begin() {
    const link = document.querySelector("[data-new-conversation]");
    if (link) location.assign(link.href);
    return link;
  }

  // The first answer may give the conversation another title: the list has it first.
  document.addEventListener("htmx:after:swap", () => {
    const listed = document.querySelector("#chat-list .conv[aria-current] > .grow");
    const title = document.querySelector(".rename:not([open]) h1");
    if (!listed || !title || title.textContent.trim() === listed.textContent) return;
    title.textContent = listed.textContent;
    document.querySelector("#conversation-title").value = listed.textContent;
    document.title = `${listed.textContent} · Agentsite`;
  });

  // After an answer has ended, or a run was resumed elsewhere, load the changed turns anew.
  // What is typed, what has the focus and the scroll position stay.
  const RETRY_MS = 2000;
  const list = document.getElementById("message-list");
  const send = document.querySelector("#chat-form [data-send]");
  const showStop = (isShown) => {
    if (!stop) return;
    stop.hidden = !isShown;
    send.hidden = isShown;
  };
  let leaves = false;
  let isLoading = false;
  let retry = null;
  async function renewTurns() {
    if (isLoading) return;
    clearTimeout(retry);
    retry = null;
    isLoading = true;
    try {
      const page = await loadPage();
      if (page) swapTurns(page);
    } catch {
      retry = setTimeout(renewTurns, RETRY_MS); // no connection, or no answer
    }
    isLoading = false;
  }
  async function loadPage() {
    if (leaves) throw new Error("The user leaves the page.");
    const { page } = list.dataset; // a page that answers a form has another address
    const answer = await fetch(location.pathname === page ? location.href : page);
    if (answer.status >= 500) throw new Error(`Status ${answer.status}`);
    if (!answer.ok || answer.redirected) return null; // deleted, or signed out
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  }
  function swapTurns(page) {
    let isComplete = true;
    for (const turn of page.querySelectorAll("#message-list > .turn")) {
      const old = document.getElementById(turn.id);
      if (old?.dataset.state === turn.dataset.state) continue;
      if (old?.querySelector(".edit-turn[open]")) isComplete = false;
      else if (old) swap(old, turn);
      else {
        document.getElementById("chat-newer")?.before(turn);
        window.htmx.process(turn);
      }
    }
    const [stream, next] = [document, page].map((one) =>
      one.querySelector("[id^=turn-live-]"),
    );
    if (next.hasAttribute("hx-sse:connect") && (next.id !== stream.id || !live()))
      swap(stream, next);
    if (page.getElementById("chat-form"))
      showStop(Boolean(page.querySelector("[data-stop]:not([hidden])")));
    const [poll, newPoll] = [document, page].map((one) =>
      one.getElementById("chat-newer"),
    );
    if (isComplete && poll && newPoll) swap(poll, newPoll);
  }
  function swap(old, element) {
    old.replaceWith(element);
    window.htmx.process(element);
  }
  // Load nothing while the user leaves the page.
  addEventListener("beforeunload", () => {
    leaves = true;
    setTimeout(() => {
      leaves = false; // it was a download, or the user stayed
    }, 5000);
  });
  addEventListener("online", () => {
    if (retry !== null) renewTurns();
  });
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    const isPoll = detail.ctx.target?.id === "chat-newer";
    if (isPoll && document.querySelector("#chat-newer[data-changed]")) renewTurns();
  });
  const live = () => document.querySelector("[id^=turn-live-][hx-sse\\:connect]");
  let wasLive = list && live();
  if (list)
    setInterval(() => {
      const isLive = live();
      if (wasLive && !isLive) {
        showStop(false);
        renewTurns();
      }
      wasLive = isLive;
    }, 500);
})();
