// The chat: Enter sends, the end of the talk stays in sight, and over is over.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const box = document.querySelector("[data-follow]");
  const form = document.getElementById("chat-form");
  let atEnd = true;

  const end = () => { box.scrollTop = box.scrollHeight; };
  if (box) {
    end();
    box.addEventListener("scroll", () => { atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60; });
    new MutationObserver(() => { if (atEnd) end(); }).observe(box, { childList: true, subtree: true, characterData: true });
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("#chat-form [name=input], .edit-turn textarea")) return;
    event.preventDefault();
    if (event.target.value.trim()) event.target.form.requestSubmit();
  });

  // One message is sent once, however often Enter is pressed until its page is there.
  form?.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => { if (form) delete form.dataset.sent; });

  // When the stream has ended, what the answer allows (rate, again) comes with a fresh page,
  // where something is being written the turns alone are fresh, and where this page is
  // itself an answer to a form nothing is.
  const isKept = () => location.pathname.endsWith("/say/") || document.querySelector(".edit-turn[open]")
    || [...document.querySelectorAll("textarea, input:not([type=hidden])")].some((one) => one.value !== one.defaultValue);
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
  // Who is on the way to another page is not called back.
  let leaves = false;
  addEventListener("beforeunload", () => { leaves = true; });
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
