"use strict";
// Stored texts: fold objects and arrays, and copy all of the text. Search, layout and paging work without it.
{
  const number = (line) => Number(line.id.slice(1));

  // A line is hidden while anything around it is folded.
  const show = (lines) => {
    let until = 0;
    for (const line of lines) {
      line.hidden = number(line) < until;
      const button = line.querySelector(".line-fold");
      if (!line.hidden && button && button.getAttribute("aria-expanded") === "false") until = Number(line.dataset.fold);
    }
  };

  const addFolds = (region) => {
    const lines = [...region.querySelectorAll(".line")];
    for (const line of lines) {
      if (!line.dataset.fold) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "line-fold";
      button.setAttribute("aria-expanded", "true");
      button.setAttribute("aria-label", `Lines ${number(line) + 1} to ${Number(line.dataset.fold) - 1}`);
      button.addEventListener("click", () => {
        button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") === "false"));
        show(lines);
      });
      line.querySelector(".line-number").after(button);
    }
  };

  // Without https there is no clipboard interface; a field and the old command do it there.
  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) throw new Error("the browser refused");
  };

  const addCopy = (button) => {
    const state = button.parentElement.querySelector("[data-copy-state]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        const answer = await fetch(button.dataset.copyFrom, { credentials: "same-origin" });
        if (!answer.ok) throw new Error(String(answer.status));
        await copy(new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer()));
        state.textContent = "Copied";
      } catch {
        state.textContent = "Copy failed; use the download";
      }
    });
  };

  for (const region of document.querySelectorAll(".lines")) addFolds(region);
  for (const button of document.querySelectorAll("[data-copy-from]")) addCopy(button);
}
