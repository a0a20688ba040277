"use strict";
// Live refresh that can be paused, and "choose all" in lists. Everything else works without script.
{
  const KEY = "headrace-live";
  const isPaused = () => sessionStorage.getItem(KEY) === "paused";

  const showState = (button) => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isPaused()));
    button.querySelector("[data-live-label]").textContent = isPaused() ? "Paused" : "Live";
  };

  const isInUse = (region) => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const region = event.target;
    if (!region.matches || !region.matches("[data-live]")) return;
    // A refresh never takes away what somebody marks or tabs through, and a hidden page asks for nothing.
    if (isPaused() || document.hidden || isInUse(region) || region.contains(document.activeElement)) event.preventDefault();
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-live-switch]")) {
      showState(button);
      button.addEventListener("click", () => {
        sessionStorage.setItem(KEY, isPaused() ? "live" : "paused");
        showState(button);
      });
    }
    for (const all of document.querySelectorAll("[data-choose-all]")) {
      all.addEventListener("change", () => {
        for (const box of document.querySelectorAll('input[name="work"]')) box.checked = all.checked;
      });
    }
    const menu = document.getElementById("menu");
    if (menu && matchMedia("(min-width: 60rem)").matches) menu.open = true;
  });
}
