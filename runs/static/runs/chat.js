// The chat: the box has the focus, the end of the conversation stays visible.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
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
  if (!location.hash && matchMedia("(hover: hover)").matches)
    document.querySelector("#chat-form [name=input]")?.focus({ preventScroll: true });

  // Edit opens with the focus in its box; Cancel and Escape close it and restore the text.
  document.addEventListener(
    "toggle",
    (event) => {
      if (event.target.matches(".edit-turn[open]"))
        event.target.querySelector("textarea").focus();
    },
    true,
  );
  document.addEventListener("reset", (event) => {
    const edit = event.target.closest(".edit-turn");
    if (!edit) return;
    edit.open = false;
    edit.querySelector("summary").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape")
      event.target.closest(".edit-turn[open]")?.querySelector("form").reset();
  });

  // After the stream has ended, load the turns anew for the buttons of the answer; what is
  // typed and what has the focus stays. A page that answers a form has no turns to load.
  async function renewTurns() {
    document.querySelector("button[form=chat-stop-form]")?.remove();
    if (location.pathname.endsWith("/say/")) return;
    const answer = await fetch(location.href);
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const turn of page.querySelectorAll("#message-list > .turn")) {
      const old = document.getElementById(turn.id);
      if (old && !old.querySelector(".edit-turn[open]")) old.replaceWith(turn);
    }
  }
  // Load nothing while the user leaves the page.
  let leaves = false;
  addEventListener("beforeunload", () => {
    leaves = true;
  });
  const live = () => document.querySelector("[id^=turn-live-][hx-sse\\:connect]");
  if (live()) {
    const timer = setInterval(() => {
      if (live()) return;
      clearInterval(timer);
      if (!leaves) renewTurns();
    }, 500);
  }
})();
