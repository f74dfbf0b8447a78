// Why: the parts of the scores as bars, what changed, and the concept.

import {bar, byId, figure, make, percent} from "./dom.js";

export function feature({block, word}) {
  const tag = block === "word" ? null : make("small", {class: "tag"}, block);
  return make("span", {class: "feature"}, word, tag ? " " : "", tag);
}

const key = ({block, word}) => `${block}:${word}`;

function row(name, share, value, isNew = false) {
  return make("li", {class: isNew ? "new" : ""}, name,
    bar(share), make("span", {class: "score"}, value));
}

function chips(entries) {
  if (!entries.length) return [make("span", {class: "faint"}, "nothing")];
  return entries.map(feature);
}

// `before` has the parts that were shown for the last query, if any.
export function show({parts, rest}, before, whose) {
  byId("whose").textContent = whose ? `Of the list ${whose}.` : "";
  byId("whose").hidden = !whose;
  byId("reasons-empty").hidden = true;
  byId("reasons").hidden = false;
  const old = new Set((before ?? parts).map(key));
  const now = new Set(parts.map(key));
  const largest = Math.max(...parts.map(({share}) => share), rest.share, 0);
  const length = (share) => (largest > 0 ? share / largest : 0);
  byId("shares").replaceChildren(
    ...parts.map((part) => row(feature(part), length(part.share),
      percent(part.share), !old.has(key(part)))),
    row(make("span", {class: "faint"}, "the rest"), length(rest.share),
      percent(rest.share)));
  byId("changes").hidden = !before;
  byId("entered").replaceChildren(
    ...chips(parts.filter((part) => !old.has(key(part)))));
  byId("left").replaceChildren(
    ...chips((before ?? []).filter((part) => !now.has(key(part)))));
}

export function showConcept({features, dimensions}) {
  const most = Math.max(...features.map(({weight}) => weight), 0);
  byId("concept-features").replaceChildren(...features.map((entry) =>
    row(feature(entry), most > 0 ? entry.weight / most : 0,
      figure(entry.weight))));
  byId("dimensions").replaceChildren(...dimensions.map((each) => {
    const way = each.level > 0 ? "above" : "below";
    const size = Math.abs(each.level).toFixed(1);
    return make("li", {},
      make("p", {class: "faint"},
        `Dimension ${each.dimension}, ${size} deviations ${way} the mean`),
      make("p", {class: "words"}, ...each.features.map(feature)));
  }));
}

export function clear() {
  byId("reasons-empty").hidden = false;
  byId("reasons").hidden = true;
}
