// Lists of results, with sentences that arrive later, and their export.

import {bar, byId, figure, make} from "./dom.js";

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

function share(score, scores) {
  const least = Math.min(...scores);
  const most = Math.max(...scores);
  return most > least ? 0.06 + 0.94 * (score - least) / (most - least) : 1;
}

function item(result, scores, elsewhere, act) {
  const {id, name, rank, score} = result;
  return make("li", {class: "result", "data-id": id},
    make("div", {class: "line"},
      make("span", {class: "rank"}, String(rank)),
      make("span", {class: "name"}, name),
      elsewhere === null ? null : make("span", {class: "where"}, elsewhere),
      make("span", {class: "score"},
        make("span", {class: "hidden"}, "score "), figure(score))),
    bar(share(score, scores)),
    make("div", {class: "sentences"}),
    make("div", {class: "acts"},
      make("button", {
        type: "button", class: "quiet", "aria-label": `Add ${name} to query`,
        onclick: () => act(result, 1),
      }, "Add to query"),
      make("button", {
        type: "button", class: "quiet", "aria-label": `Not like ${name}`,
        onclick: () => act(result, -0.5),
      }, "Not like this")));
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
  byId("lists").replaceChildren(...lists);
}

export function showSentences(place, entities) {
  const list = byId("lists").querySelector(`[data-list="${place}"]`);
  const items = new Map(
    [...(list?.children ?? [])].map((element) => [element.dataset.id, element]));
  for (const {id, sentences} of entities) {
    items.get(id)?.querySelector(".sentences").replaceChildren(
      ...sentences.map(({text, marks}) => make("p", {}, ...marked(text, marks))));
  }
}

function cell(value) {
  let text = String(value);
  // A spreadsheet would take such a text for a formula.
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCsv(answers, sentences) {
  const lines = [["system", "ranking", "rank", "id", "name", "score", "sentence"]];
  answers.forEach((answer, place) => answer.results.forEach((result) => {
    const best = sentences[place].get(result.id)?.[0]?.text ?? "";
    const {rank, id, name, score} = result;
    lines.push([answer.system, answer.ranking, rank, id, name, score, best]);
  }));
  return lines.map((line) => line.map(cell).join(",") + "\r\n").join("");
}

export function toJson(answers, sentences, reasons) {
  const lists = answers.map((answer, place) => ({
    ...answer,
    results: answer.results.map((result) => ({
      ...result, sentences: sentences[place].get(result.id) ?? [],
    })),
  }));
  return JSON.stringify({lists, reasons}, null, 1) + "\n";
}

export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], {type: kind}));
  const link = make("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
