(() => {
  const rgb = (text) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const below = (el) => {
    let color = null;
    const layers = [];
    for (; el; el = el.parentElement) {
      const c = rgb(getComputedStyle(el).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    color = [255, 255, 255, 1];
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches;
    if (dark) color = [18, 18, 18, 1];
    for (const layer of layers.reverse()) color = over(layer, color);
    return color;
  };
  const name = (el) => `<${el.localName}${el.dataset?.testid ? " " + el.dataset.testid : ""} class="${el.className}"> ${(el.textContent || el.value || "").trim().slice(0, 40)}`;
  const contrast = () => {
    const faults = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const el = node.parentElement;
      if (!node.data.trim() || !sp.shown(el) || el.closest("script, style, [disabled], [aria-disabled=true], option, .xterm-accessibility")) continue;
      const box = el.getBoundingClientRect();
      if (box.width <= 1 || box.height <= 1) continue;
      const style = getComputedStyle(el);
      const ground = below(el);
      let opacity = 1;
      for (let at = el; at; at = at.parentElement) opacity *= +getComputedStyle(at).opacity;
      const ink = rgb(style.color);
      ink[3] *= opacity;
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || size >= 18.66 && +style.fontWeight >= 700;
      const got = ratio(over(ink, ground), ground);
      if (got < (large ? 3 : 4.5)) faults.add(`contrast ${got.toFixed(2)}: ${name(el)} (${style.color} on ${ground.map(Math.round)})`);
    }
    return [...faults];
  };
  const wide = () => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth && document.body.scrollWidth <= root.clientWidth) return [];
    return [...document.querySelectorAll("body *")].filter((el) => sp.shown(el) && el.getBoundingClientRect().right > innerWidth + 1)
      .slice(0, 5).map(name).concat(`the page is ${root.scrollWidth} wide`);
  };
  // A radio button, and one of a group whose tab index moves, are reached by arrow keys.
  const tabStops = () => sp.controls().filter((el) => el.tabIndex >= 0 && el.type !== "radio");
  const reached = window.sp.reached ??= new WeakSet();
  const unseenFocus = () => {
    const el = document.activeElement;
    if (!el || el === document.body) return "";
    reached.add(el);
    const mark = (at) => { const s = getComputedStyle(at); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none"; };
    for (let at = el, i = 0; at && i < 4; at = at.parentElement, i++) if (mark(at)) return "";
    return name(el);
  };
  const notReached = () => tabStops().filter((el) => !reached.has(el)).map(name);
  return { contrast, wide, tabStops, unseenFocus, notReached };
})()
