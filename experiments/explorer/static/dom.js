// Elements are made from text, never from markup: data cannot become code.

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function bar(share, label = "") {
  const fill = make("span", {class: "fill"});
  fill.style.width = `${Math.round(100 * Math.max(0, Math.min(1, share)))}%`;
  const properties = label ? {role: "img", "aria-label": label} :
    {"aria-hidden": "true"};
  return make("span", {class: "bar", ...properties}, fill);
}

export function figure(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return size >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export const percent = (share) =>
  `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`
    .replace("-", "−");

export const signed = (value) =>
  value.toFixed(1).replace("-0.0", "0.0").replace("-", "−");

export function debounce(call, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}
