"use strict";
// "/" leads to the search box of the top bar, from anywhere but where somebody writes; Escape leads back.
{
  let before = null;
  const isWriting = (element) => element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);

  document.addEventListener("keydown", (event) => {
    const box = document.querySelector("[data-quick-trace]");
    if (!box) return;
    if (event.key === "/" && localStorage.getItem("headrace-keys") !== "off" && !document.querySelector("dialog[open]") && !event.ctrlKey && !event.metaKey && !event.altKey && !isWriting(document.activeElement)) {
      event.preventDefault();
      before = document.activeElement;
      box.focus();
      box.select();
    } else if (event.key === "Escape" && document.activeElement === box) {
      box.blur();
      if (before && before !== document.body) before.focus();
    }
  });
}
