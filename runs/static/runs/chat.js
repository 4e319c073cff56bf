// The chat: Enter sends, the end of the conversation stays visible.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const box = document.querySelector("[data-follow]");
  const form = document.getElementById("chat-form");
  let atEnd = true;

  const end = () => {
    box.scrollTop = box.scrollHeight;
  };
  if (box) {
    end();
    box.addEventListener("scroll", () => {
      atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    });
    new MutationObserver(() => {
      if (atEnd) end();
    }).observe(box, { childList: true, subtree: true, characterData: true });
    if (location.hash)
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  document.addEventListener("keydown", (event) => {
    if (
      event.key !== "Enter" ||
      event.shiftKey ||
      event.isComposing ||
      !event.target.matches("#chat-form [name=input], .edit-turn textarea")
    )
      return;
    event.preventDefault();
    if (event.target.value.trim()) event.target.form.requestSubmit();
  });

  // Send a message once, even if Enter is pressed again before the next page.
  form?.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => {
    if (form) delete form.dataset.sent;
  });

  // After the stream has ended, reload the page for the buttons of the answer. If the user
  // is typing, replace only the turns; on a page that answers a form, replace nothing.
  const isKept = () =>
    location.pathname.endsWith("/say/") ||
    document.querySelector(".edit-turn[open]") ||
    [...document.querySelectorAll("textarea, input:not([type=hidden])")].some(
      (one) => one.value !== one.defaultValue,
    );
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
  // Do not reload while the user leaves the page.
  let leaves = false;
  addEventListener("beforeunload", () => {
    leaves = true;
  });
  const live = () => document.querySelector("[id^=turn-live-][hx-sse\\:connect]");
  if (live()) {
    const timer = setInterval(() => {
      if (live()) return;
      clearInterval(timer);
      if (leaves) return;
      if (!isKept()) location.reload();
      else renewTurns();
    }, 500);
  }
})();
