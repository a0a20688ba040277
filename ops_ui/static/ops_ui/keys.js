"use strict";
// Keys for the daily work: ? shows them, / searches, g and a letter goes to a page, j and k move through rows, x ticks one. Enter is the
// browser's own.
// None of them changes anything that is stored, none is taken from a field, and the page of the keys turns them off.
{
  const SETTING = "headrace-keys";
  const SEQUENCE_MS = 1500;
  const isOff = () => localStorage.getItem(SETTING) === "off";
  let goSince = null;

  const isWriting = (element) =>
    element.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) && !/^(checkbox|button|submit)$/.test(element.type));

  const rows = () =>
    [...document.querySelectorAll("main table.grid tbody tr")].filter((row) => row.querySelector("a[href]") && row.offsetParent);
  const linkOf = (row) => row.querySelector("a[href]");
  const current = () => document.activeElement.closest?.("main table.grid tbody tr") ?? null;

  const move = (step) => {
    const all = rows();
    const place = all.indexOf(current());
    const next = all[place < 0 ? (step > 0 ? 0 : all.length - 1) : place + step];
    if (!next) return;
    linkOf(next).focus({ focusVisible: true });
    next.scrollIntoView({ block: "nearest" });
  };

  const search = () => {
    const box = document.querySelector("[data-quick-trace]");
    box?.focus();
    box?.select();
  };

  const act = {
    "?": () => document.getElementById("keys-shown")?.showModal(),
    "/": search,
    j: () => move(1),
    k: () => move(-1),
    x: () => current()?.querySelector('input[type="checkbox"]')?.click(),
    g: () => { goSince = performance.now(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isOff() || isWriting(document.activeElement) || document.querySelector("dialog[open]")) return;
    const isGoing = goSince !== null && performance.now() - goSince < SEQUENCE_MS;
    goSince = null;
    if (isGoing) {
      const link = document.querySelector(`#navigation a[data-go="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        location.assign(link.href);
      }
      return;
    }
    if (!Object.hasOwn(act, event.key)) return;
    event.preventDefault();
    act[event.key]();
  });

  const button = document.querySelector("[data-keys-switch]");
  if (button) {
    const show = () => {
      button.hidden = false;
      button.setAttribute("aria-pressed", String(!isOff()));
      button.textContent = isOff() ? "Shortcuts are off" : "Shortcuts are on";
    };
    button.addEventListener("click", () => {
      localStorage.setItem(SETTING, isOff() ? "on" : "off");
      show();
    });
    show();
  }
}
