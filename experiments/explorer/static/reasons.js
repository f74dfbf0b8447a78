// Why: the rationale as bars, what changed in it, and active concepts.

import {bar, byId, figure, make} from "./dom.js";

function feature({block, word}) {
  const tag = block === "word" ? null : make("small", {class: "tag"}, block);
  return make("span", {class: "feature"}, word, tag ? " " : "", tag);
}

function row(entry, most, isNew) {
  const weight = figure(entry.weight);
  return make("li", {class: isNew ? "new" : ""},
    feature(entry),
    bar(most > 0 ? entry.weight / most : 0),
    make("span", {class: "score"}, weight));
}

function chips(entries) {
  if (!entries.length) return [make("span", {class: "faint"}, "nothing")];
  return entries.map(feature);
}

export function show(answer, compared) {
  byId("reasons-empty").hidden = true;
  byId("reasons").hidden = false;
  const most = Math.max(...answer.rationale.map(({weight}) => weight), 0);
  const key = ({block, word}) => `${block}:${word}`;
  const entered = new Set(answer.entered.map(key));
  byId("rationale").replaceChildren(...answer.rationale.map((entry) =>
    row(entry, most, entered.has(key(entry)))));
  byId("changes").hidden = !compared;
  byId("entered").replaceChildren(...chips(answer.entered));
  byId("left").replaceChildren(...chips(answer.left));
  byId("concepts").replaceChildren(...answer.concepts.map((concept) => {
    const {dimension, level, features} = concept;
    const way = level > 0 ? "above" : "below";
    const size = Math.abs(level).toFixed(1);
    return make("li", {},
      make("p", {class: "faint"},
        `Dimension ${dimension + 1}, ${size} deviations ${way}`),
      make("p", {class: "words"}, ...features.map(feature)));
  }));
}

export function clear() {
  byId("reasons-empty").hidden = false;
  byId("reasons").hidden = true;
}
