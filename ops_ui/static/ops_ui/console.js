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
    if (selection && !selection.isCollapsed && region.contains(selection.anchorNode)) return true;
    // Rows do not move away under a pointer, or under what somebody writes.
    if (region.dataset.live === "list" && region.querySelector("tbody:hover, .heat-table:hover")) return true;
    const focused = document.activeElement;
    return region.contains(focused) && focused.matches("textarea, select, input:not([type=checkbox])");
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const region = event.target;
    if (!region.matches || !region.matches("[data-live]")) return;
    // A refresh never takes away what somebody marks or writes (`refresh.js` keeps the focus), and a hidden page asks for nothing.
    if (isPaused() || document.hidden || isInUse(region)) event.preventDefault();
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
