// The page: puts the query to the server whenever it changes.

import * as api from "./api.js";
import {byId, debounce, make, signed} from "./dom.js";
import * as query from "./query.js";
import * as reasons from "./reasons.js";
import * as results from "./results.js";
import * as same from "./same.js";
import * as search from "./search.js";

const {state} = query;
let model = null;
let running = null;
// The last answers, for export, and the parts that were shown for the last
// query and for the one before, for what changed.
const NOTHING = {
  answers: [], sentences: [], reasons: [], chances: [], concept: null,
};
let shown = NOTHING;
let last = {key: "", parts: null};
let before = null;

function fail(error) {
  byId("alert").textContent = error.message;
  byId("alert").hidden = false;
}

function selects() {
  const option = ({id, label}) => make("option", {value: id}, label);
  for (const id of ["system", "other-system"]) {
    byId(id).replaceChildren(...model.systems.map(option));
  }
  for (const id of ["ranking", "other-ranking"]) {
    byId(id).replaceChildren(...model.rankings.map(option));
  }
  const on = (id, change) => byId(id).addEventListener("change", (event) => {
    change(event.target);
    changed();
  });
  on("system", ({value}) => { state.system = value; });
  on("ranking", ({value}) => { state.ranking = value; });
  on("other-system", ({value}) => { state.other = value; });
  on("other-ranking", ({value}) => { state.otherRanking = value; });
  on("count", ({value}) => { state.count = Number(value); });
  on("relative", ({checked}) => { state.relative = checked; });
  on("compare", ({checked}) => {
    const another = model.systems.find(({id}) => id !== state.system);
    state.other = checked ? (another?.id ?? state.system) : "";
  });
}

function showControls() {
  const ranked = (id, system, value) => {
    byId(id).value = value;
    byId(id).disabled = system !== "nvse";
  };
  byId("system").value = state.system;
  ranked("ranking", state.system, state.ranking);
  byId("compare").checked = Boolean(state.other);
  byId("other-pair").hidden = !state.other;
  byId("other-system").value = state.other || state.system;
  ranked("other-ranking", state.other, state.otherRanking);
  byId("count").value = String(state.count);
  byId("relative").checked = state.relative;
}

function chip(member) {
  const {id, name} = member;
  const value = make("output", {}, signed(member.weight));
  const slider = make("input", {
    type: "range", min: String(query.LEAST), max: String(query.MOST),
    step: "0.1", "aria-label": `Weight of ${name}`,
    oninput: (event) => {
      member.weight = Number(event.target.value);
      value.textContent = signed(member.weight);
      item.classList.toggle("away", member.weight < 0);
      changed(false);
    },
    onkeydown: (event) => {
      if (event.key === "Delete") drop(id);
    },
  });
  slider.value = String(member.weight);
  const item = make("li", {class: member.weight < 0 ? "away" : "",
    "data-id": id},
  make("span", {class: "name"}, name),
  make("button", {
    type: "button", class: "remove", "aria-label": `Remove ${name}`,
    onclick: () => drop(id),
  }, "×"),
  slider, value);
  return item;
}

function drop(id) {
  const place = state.members.findIndex((member) => member.id === id);
  query.remove(id);
  changed();
  // The focus goes to the entity that took the place, or to the search.
  const items = byId("chips").children;
  const next = items[Math.min(place, items.length - 1)];
  (next?.querySelector("input") ?? byId("find")).focus();
}

function showChips() {
  same.show(changed);
  byId("chips").replaceChildren(...state.members.map(chip));
  const empty = state.members.length === 0;
  byId("chips-empty").hidden = !empty;
  byId("clear").hidden = empty;
  byId("share").hidden = empty;
}

function addAll(entities) {
  let count = 0;
  for (const entity of entities) {
    const known = state.members.some(({id}) => id === entity.id);
    if (!known && state.members.length >= model.limits.members) {
      fail(new Error(
        `A query has ${model.limits.members} entities at most.`));
      break;
    }
    query.add(entity, entity.weight ?? 1);
    count += 1;
  }
  changed();
  return count;
}

const ask = debounce(run, 120);

// `whole` is false while a slider moves: its chip must not be made anew.
function changed(whole = true) {
  if (whole) {
    showChips();
    showControls();
    history.pushState(null, "", query.toAddress());
  } else {
    history.replaceState(null, "", query.toAddress());
  }
  byId("shared").textContent = "";
  ask();
}

function questions() {
  const members = query.plain(state.members, same.members);
  const one = (system, ranking) =>
    ({members, system, ranking: system === "nvse" ? ranking : ""});
  const found = [one(state.system, state.ranking)];
  if (state.other) found.push(one(state.other, state.otherRanking));
  return found;
}

function showEmpty() {
  shown = NOTHING;
  results.show([], act);
  reasons.clear();
  const none = state.members.length === 0;
  byId("welcome").hidden = !none;
  byId("status").textContent = none ? "" :
    "All weights are zero: turn one up, or below zero.";
  byId("csv").hidden = byId("json").hidden = true;
  byId("lists").removeAttribute("aria-busy");
}

// Adds an entity with a weight; without one, asks whom it is the same as.
function act(entity, weight) {
  if (weight !== null) return addAll([{...entity, weight}]);
  const listed = shown.answers.flatMap((answer) => answer.results);
  const others = new Map(
    [...state.members, ...listed].map((each) => [each.id, each]));
  same.choose(entity, [...others.values()], changed);
}

async function run() {
  running?.abort();
  running = new AbortController();
  const {signal} = running;
  byId("alert").hidden = true;
  if (!query.askable()) return showEmpty();
  byId("welcome").hidden = true;
  byId("lists").setAttribute("aria-busy", "true");
  if (!shown.answers.length) byId("status").textContent = "Asking…";
  const asked = questions();
  const key = JSON.stringify(asked[0].members);
  if (key !== last.key) before = last.parts;
  const began = performance.now();
  try {
    const [concept, ...answers] = await Promise.all([
      api.concept({
        members: asked[0].members, features: 12, relative: state.relative,
      }, signal),
      ...asked.map((each) => api.expand({...each, k: state.count}, signal)),
    ]);
    learnNames(answers[0].members);
    answers.forEach((answer, at) => { answers[at] = same.fold(answer); });
    const sentences = answers.map(() => new Map());
    shown = {answers, sentences, reasons: [], chances: [], concept};
    results.show(answers, act);
    reasons.showConcept(concept);
    byId("csv").hidden = byId("json").hidden = false;
    const time = Math.round(performance.now() - began);
    byId("status").textContent =
      `${answers[0].results.length} of ${model.entities.toLocaleString("en")}` +
      ` entities, in ${time} ms`;
    byId("lists").removeAttribute("aria-busy");
    const ids = answers.map((answer) => answer.results.map(({id}) => id));
    const explain = async (each, place) => {
      if (!ids[place].length) return;
      const why = await api.reasons(
        {...each, entities: ids[place], features: 12}, signal);
      shown.reasons[place] = why;
      results.showReasons(place, why.entities);
      if (place === 0) {
        reasons.show(why.sum, before,
          answers.length > 1 ? results.title(answers[0]) : "");
        last = {key, parts: why.sum.parts};
      }
    };
    const support = (each, place) => api.sentences(
      each, ids[place], (entities) => {
        if (signal.aborted) return;
        entities.forEach((entity) =>
          sentences[place].set(entity.id, entity.sentences));
        results.showSentences(place, entities);
      }, signal);
    const weigh = async (each, place) => {
      if (!ids[place].length || !model.chances.includes(each.system)) return;
      const given = await api.chances({...each, entities: ids[place]}, signal);
      shown.chances[place] = given;
      results.showChances(place, given);
      if (place === 0 && given.size !== null) {
        byId("status").textContent +=
          `; about ${given.size} more belong to the set`;
      }
    };
    await Promise.all([
      ...asked.map(explain), ...asked.map(support), ...asked.map(weigh),
    ]);
    document.body.dataset.settled = String(Date.now());
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("lists").removeAttribute("aria-busy");
    byId("status").textContent = "";
    fail(error);
  }
}

// A link holds ids alone; the server's answer tells their names.
function learnNames(members) {
  const names = new Map(members.map(({id, name}) => [id, name]));
  const missing = state.members.filter(({id, name}) => names.get(id) !== name);
  if (!missing.length) return;
  missing.forEach((member) => { member.name = names.get(member.id) ?? member.id; });
  showChips();
}

function examples() {
  byId("examples").replaceChildren(...model.examples.map((entities) =>
    make("li", {}, make("button", {
      type: "button", class: "example", onclick: () => addAll(entities),
    }, entities.map(({name}) => name).join(", ")))));
}

function setUpButtons() {
  byId("clear").addEventListener("click", () => {
    state.members = [];
    changed();
    byId("find").focus();
  });
  byId("share").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      byId("shared").textContent = "Copied.";
    } catch {
      byId("shared").textContent = "Copy the address of this page.";
    }
  });
  byId("csv").addEventListener("click", () => results.save("results.csv",
    "text/csv", results.toCsv(
      shown.answers, shown.sentences, shown.reasons, shown.chances)));
  byId("json").addEventListener("click", () => results.save("results.json",
    "application/json",
    results.toJson(shown.answers, shown.sentences, shown.reasons,
      shown.concept)));
  byId("same-save").addEventListener("click", () =>
    results.save("same.json", "application/json", same.toFile()));
  byId("help-open").addEventListener("click", () => byId("help").showModal());
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("textarea, select") ||
      event.target.matches("input:not([type=range], [type=checkbox])");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      byId("find").focus();
    } else if (event.key === "?" && !byId("help").open) {
      byId("help").showModal();
    }
  });
}

function open() {
  query.fromAddress(location.hash, model);
  showChips();
  showControls();
  run();
}

async function start() {
  setUpButtons();
  try {
    model = await api.model();
  } catch (error) {
    byId("about").textContent = "";
    return fail(error);
  }
  const number = (value) => value.toLocaleString("en");
  byId("about").textContent = `${number(model.entities)} entities, ` +
    `${number(model.features)} features, ${number(model.sentences)} sentences`;
  model.systems.forEach(({id, label}) => results.labels.systems.set(id, label));
  model.rankings.forEach(({id, label}) =>
    results.labels.rankings.set(id, label));
  selects();
  examples();
  search.setUp((entity) => addAll([entity]), fail);
  search.setUpPaste(addAll, fail);
  window.addEventListener("popstate", open);
  open();
}

start();
