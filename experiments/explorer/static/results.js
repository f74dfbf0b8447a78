// Lists of results, with sentences that arrive later, and their export.

import {bar, byId, figure, make, percent} from "./dom.js";
import {openDocument, openEntity} from "./pages.js";
import {AWAY} from "./query.js";
import {feature} from "./reasons.js";

export const labels = {systems: new Map(), rankings: new Map()};

export function title({system, ranking}) {
  const label = labels.systems.get(system) ?? system;
  const by = labels.rankings.get(ranking);
  return system === "nvse" && by ? `${label}, ${by}` : label;
}

function marked(text, marks) {
  const parts = [];
  // Places are counted in characters, of which some are two units here.
  const letters = [...text];
  let at = 0;
  for (const [start, end] of marks) {
    parts.push(letters.slice(at, start).join(""));
    parts.push(make("mark", {}, letters.slice(start, end).join("")));
    at = end;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}

// Bars begin at zero; a score below zero has one of another color.
function scoreBar(score, scores) {
  const most = Math.max(...scores.map(Math.abs));
  const made = bar(most > 0 ? Math.abs(score) / most : 0);
  if (score < 0) made.classList.add("below");
  return made;
}

function item(result, scores, elsewhere, act) {
  const {id, name, rank, score} = result;
  return make("li", {class: "result", "data-id": id},
    make("div", {class: "line"},
      make("span", {class: "rank"}, String(rank)),
      make("button", {
        type: "button", class: "name", "aria-haspopup": "dialog",
        onclick: () => openEntity(id, act),
      }, name),
      make("span", {class: "chance"}),
      elsewhere === null ? null : make("span", {class: "where"}, elsewhere),
      make("span", {class: "score"},
        make("span", {class: "hidden"}, "score "), figure(score))),
    scoreBar(score, scores),
    make("p", {class: "because"}),
    make("div", {class: "sentences"}),
    make("div", {class: "acts"},
      make("button", {
        type: "button", class: "quiet", "aria-label": `Add to query: ${name}`,
        onclick: () => act(result, 1),
      }, "Add to query"),
      make("button", {
        type: "button", class: "quiet", "aria-label": `Not like this: ${name}`,
        onclick: () => act(result, AWAY),
      }, "Not like this"),
      make("button", {
        type: "button", class: "quiet", "aria-haspopup": "dialog",
        "aria-label": `Same as another: ${name}`,
        onclick: () => act(result, null),
      }, "Same as …")));
}

export function show(answers, act) {
  const lists = answers.map((answer, place) => {
    const scores = answer.results.map(({score}) => score);
    const other = answers[1 - place];
    const ranks = new Map(other?.results.map(({id, rank}) => [id, rank]));
    const where = (id) =>
      ranks.has(id) ? `other list: ${ranks.get(id)}` : "only here";
    return make("div", {class: "list"},
      make("h3", {id: `list-${place}`}, title(answer)),
      make("ol", {"aria-labelledby": `list-${place}`, "data-list": `${place}`},
        ...answer.results.map((result) =>
          item(result, scores, other ? where(result.id) : null, act))));
  });
  const held = focused();
  byId("lists").replaceChildren(...lists);
  held?.().focus();
}

// Where the focus is in the lists, as a function that finds the place again.
function focused() {
  const active = document.activeElement;
  const result = active?.closest?.(".result");
  if (!result || !byId("lists").contains(result)) return null;
  const place = result.parentElement.dataset.list;
  const rank = [...result.parentElement.children].indexOf(result);
  const number = [...result.querySelectorAll("button")].indexOf(active);
  return () => {
    const items = [...itemsOf(place).values()];
    const next = items[Math.min(rank, items.length - 1)];
    return next?.querySelectorAll("button")[number] ?? byId("results-heading");
  };
}

function itemsOf(place) {
  const list = byId("lists").querySelector(`[data-list="${place}"]`);
  return new Map(
    [...(list?.children ?? [])].map((element) => [element.dataset.id, element]));
}

const SHOWN = 4;  // Parts of a score that a result shows.

// The parts that weigh most in each result's score, and the share of the rest.
export function showReasons(place, entities) {
  const items = itemsOf(place);
  for (const {id, parts} of entities) {
    const first = parts.slice(0, SHOWN);
    const rest = first.reduce((left, {share}) => left - share, 1);
    const piece = (name, value) => make("span", {class: "part"}, name,
      ` ${percent(value)}`);
    items.get(id)?.querySelector(".because").replaceChildren(
      ...first.map((part) => piece(feature(part), part.share)),
      ...(first.length ? [piece("the rest", rest)] : []));
  }
}

// Chances of results, and a line after the last that belongs to the set.
export function showChances(place, {size, entities}) {
  const items = itemsOf(place);
  entities.forEach(({id, chance}, at) => {
    const item = items.get(id);
    if (!item || chance === null) return;
    item.querySelector(".chance").textContent = `chance ${percent(chance)}`;
    item.classList.toggle("beyond", at >= size);
    item.classList.toggle("last", at + 1 === size);
  });
}

export function showSentences(place, entities) {
  const items = itemsOf(place);
  for (const {id, sentences} of entities) {
    items.get(id)?.querySelector(".sentences").replaceChildren(
      ...sentences.map(({text, marks, doc}) => make("p", {},
        ...marked(text, marks),
        doc ? make("button", {
          type: "button", class: "doc", "aria-haspopup": "dialog",
          "aria-label": `Document ${doc}`, onclick: () => openDocument(doc),
        }, doc) : null)));
  }
}

function cell(value) {
  let text = String(value);
  // A spreadsheet would take such a text for a formula.
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const because = (reasons, id) => (reasons?.entities ?? [])
  .filter((entity) => entity.id === id)
  .flatMap(({parts}) => parts)
  .map(({block, word, share}) => `${block}:${word} ${percent(share)}`)
  .join("; ");

const asked = ({members}) =>
  members.map(({name, weight}) => `${name}:${weight}`).join("; ");

export function toCsv(answers, sentences, reasons, chances) {
  const lines = [["query", "system", "ranking", "rank", "id", "name", "score",
    "chance", "reasons", "sentence"]];
  answers.forEach((answer, place) => answer.results.forEach((result) => {
    const best = sentences[place].get(result.id)?.[0]?.text ?? "";
    const {rank, id, name, score} = result;
    const chance = chances[place]?.entities.find((x) => x.id === id)?.chance;
    lines.push([asked(answer), answer.system, answer.ranking, rank, id, name,
      score, chance ?? "",
      because(reasons[place], id), best]);
  }));
  return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
}

export function toJson(answers, sentences, reasons, concept) {
  const lists = answers.map((answer, place) => ({
    ...answer,
    reasons: reasons[place] ?? null,
    results: answer.results.map((result) => ({
      ...result, sentences: sentences[place].get(result.id) ?? [],
    })),
  }));
  return JSON.stringify({lists, concept}, null, 1) + "\n";
}

export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], {type: kind}));
  const link = make("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
