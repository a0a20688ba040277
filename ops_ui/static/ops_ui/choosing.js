"use strict";
// Rows that are ticked: how many, a range with the shift key, and the box above them. The forms work without it.
{
  const boxes = () => [...document.querySelectorAll('input[name="work"]')];
  const all = document.querySelector("[data-choose-all]");
  const count = document.querySelector("[data-chosen-count]");
  let last = null;

  const tell = () => {
    const rows = boxes();
    const chosen = rows.filter((box) => box.checked).length;
    if (count) count.textContent = chosen ? `(${chosen} selected)` : "";
    if (all) {
      all.checked = chosen > 0 && chosen === rows.length;
      all.indeterminate = chosen > 0 && chosen < rows.length;
    }
    for (const button of document.querySelectorAll('#choose button[value="chosen"]')) button.disabled = chosen === 0;
  };

  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.name !== "work") return;
    const rows = boxes();
    if (event.shiftKey && last && rows.includes(last)) {
      const ends = [rows.indexOf(last), rows.indexOf(box)];
      for (const row of rows.slice(Math.min(...ends), Math.max(...ends) + 1)) row.checked = box.checked;
    }
    last = box;
    tell();
  });
  document.addEventListener("change", tell);
  document.addEventListener("headrace:refreshed", tell);
  // The newest deaths are at the end of a table that is wider than the screen.
  for (const table of document.querySelectorAll(".heat .scroll")) table.scrollLeft = table.scrollWidth;
  addEventListener("pageshow", tell); // also when the browser's "back" restores ticks
}
