"use strict";
// The search box of the top bar ("/" leads there, see `keys.js`): Escape leads back to where one was.
{
  const box = document.querySelector("[data-quick-trace]");
  let before = null;

  box?.addEventListener("focus", (event) => { before = event.relatedTarget; });
  box?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    box.blur();
    before?.focus();
  });
}
