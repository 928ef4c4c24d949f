// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tests ask a page. It runs in every document before the page's own script.
(() => {
  const shown = (el) => el.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && el.getClientRects().length > 0;
  // all returns the visible elements that a path of "testid" or "testid~text" leads to.
  const all = (path) => {
    let from = [document];
    for (const step of path) {
      const at = step.indexOf("~");
      const id = at < 0 ? step : step.slice(0, at);
      const text = at < 0 ? "" : step.slice(at + 1);
      const next = [];
      for (const root of from) {
        for (const el of root.querySelectorAll(`[data-testid="${id}"]`)) {
          if (shown(el) && (el.value === undefined ? el.textContent : el.textContent + el.value).includes(text)) next.push(el);
        }
      }
      from = next;
    }
    return from;
  };
  // until resolves with what f returns as soon as that is neither false nor empty: asked again after each
  // change of the document, and at each frame that changes the layout.
  const until = (f) => new Promise((resolve, reject) => {
    const look = () => {
      let got;
      try { got = f(); } catch (err) { stop(); reject(err); return true; }
      if (!got) return false;
      stop();
      resolve(got);
      return true;
    };
    const changes = new MutationObserver(look);
    const events = ["scroll", "input", "change", "focusin", "transitionend", "load", "resize"];
    const stop = () => { changes.disconnect(); events.forEach((e) => window.removeEventListener(e, look, true)); };
    if (look()) return;
    changes.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    events.forEach((e) => window.addEventListener(e, look, true));
  });
  // where returns the middle of an element that can be clicked: nothing else covers it.
  let aim = null, struck = false;
  window.addEventListener("click", (e) => { struck ||= aim !== null && aim.contains(e.target); }, true);
  const hit = () => struck;
  const where = (path) => until(() => {
    const el = all(path)[0];
    if (!el || el.disabled || el.getAttribute("aria-disabled") === "true") return null;
    el.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const box = el.getClientRects()[0];
    aim = el;
    struck = false;
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    const top = document.elementFromPoint(x, y);
    return top && (el === top || el.contains(top) || top.contains(el) || top.closest("label")?.contains(el)) ? { x, y } : null;
  });
  // hold keeps messages of the server from the page until release.
  let held = null;
  const waiting = [];
  class Socket extends WebSocket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", (e) => {
        if (held === null || e.again) return;
        e.stopImmediatePropagation();
        waiting.push([this, e.data]);
      });
    }
  }
  window.WebSocket = Socket;
  const hold = () => { held = true; };
  const release = () => {
    held = null;
    for (const [socket, data] of waiting.splice(0)) {
      const e = new MessageEvent("message", { data });
      e.again = true;
      socket.dispatchEvent(e);
    }
  };
  // controls are what a person can use.
  const controls = () => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex], [role=button]")]
    .filter((el) => shown(el) && !el.disabled && !el.closest("[inert], [aria-hidden=true]"));
  // When an element with a testid was in the document for the first time.
  const first = {};
  new MutationObserver(() => {
    for (const id of ["run"]) {
      if (!(id in first) && document.querySelector(`[data-testid="${id}"]`)) {
        first[id] = 0;
        requestAnimationFrame(() => { first[id] = performance.now(); });
      }
    }
  }).observe(document, { subtree: true, childList: true });
  window.sp = { all, until, where, hit, hold, release, controls, shown, seen: { first } };
})();
