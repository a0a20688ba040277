"use strict";
// Puts the answer of a live refresh into the page: only what changed is touched, so that nothing flickers, ticks and open details stay,
// and what has the focus keeps it. Rows are told apart by what they are about, wherever they moved.
{
  const key = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    if (node.id || !/^(TR|LI)$/.test(node.nodeName)) return node.id;
    const box = node.querySelector('input[name="work"]');
    return box ? box.value : (node.querySelector("a[href]")?.getAttribute("href") ?? "");
  };

  const byKey = (parent) => {
    const found = new Map();
    for (const child of parent.children) if (key(child) && !found.has(key(child))) found.set(key(child), child);
    return found;
  };

  // What a person did to an element is not the server's to undo.
  const OF_PEOPLE = { DETAILS: ["open"] };

  const attributes = (old, fresh) => {
    const kept = OF_PEOPLE[old.nodeName] ?? [];
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  };

  const update = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.nodeValue = fresh.nodeValue;
      return;
    }
    attributes(old, fresh);
    children(old, fresh);
  };

  // Takes a node out of the page; the one behind it.
  const without = (node) => {
    const next = node.nextSibling;
    node.remove();
    return next;
  };

  const children = (old, fresh) => {
    const known = byKey(old);
    const wanted = byKey(fresh);
    const isGone = (node) => (key(node) ? !wanted.has(key(node)) : node.nodeType === Node.TEXT_NODE);
    let at = old.firstChild;
    for (const one of [...fresh.childNodes]) {
      const mine = key(one);
      while (!mine && at && at.nodeName !== one.nodeName && isGone(at)) at = without(at);
      const match = mine ? known.get(mine) : at && at.nodeName === one.nodeName && !key(at) ? at : undefined;
      if (!match || match.nodeName !== one.nodeName) {
        old.insertBefore(one, at);
        continue;
      }
      known.delete(mine);
      // What stood before it and is gone goes now: a row that only moves up is not taken out, and keeps the focus.
      while (at && at !== match && isGone(at) && at.compareDocumentPosition(match) & Node.DOCUMENT_POSITION_FOLLOWING) at = without(at);
      if (at === match) at = at.nextSibling;
      else old.insertBefore(match, at);
      update(match, one);
    }
    while (at) at = without(at);
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    const region = event.target;
    if (!region.matches || !region.matches("[data-live]") || !event.detail.shouldSwap) return;
    event.detail.shouldSwap = false;
    const text = event.detail.serverResponse;
    if (/<html/i.test(text)) {
      location.reload(); // the session is over: this is the login page
      return;
    }
    const fresh = document.createElement("template");
    fresh.innerHTML = text;
    children(region, document.importNode(fresh.content, true));
    region.dispatchEvent(new CustomEvent("headrace:refreshed", { bubbles: true }));
  });
}
