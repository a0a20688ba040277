"use strict";
// After a secret was made: the address becomes the page's own, so that a reload asks for no second one; and copy buttons.
{
  const head = document.querySelector("[data-address]");
  if (head && location.pathname !== head.dataset.address) history.replaceState(null, "", head.dataset.address);

  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
      });
    }
  }
}
