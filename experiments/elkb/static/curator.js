// The curator's page: finds an entity, lists its facts, keeps verdicts.

import {draw} from "./graph.js";

const byId = (id) => document.getElementById(id);

// Elements are made from text, never from markup: data cannot become code.
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const value = await response.json().catch(() => null);
  if (!response.ok || value === null) {
    throw new Error(value?.error ?? `The server answered ${response.status}.`);
  }
  return value;
}

function fail(error) {
  byId("alert").textContent = error.message;
  byId("alert").hidden = false;
}

const guard = (call) => (...values) => {
  byId("alert").hidden = true;
  return call(...values).catch(fail);
};

function showVerdicts({accept, reject}) {
  byId("verdicts").textContent = `${accept} accepted, ${reject} rejected`;
}

const decide = guard(async (fact, verdict, buttons) => {
  const now = fact.verdict === verdict ? null : verdict;
  const {verdicts} = await request("/api/decide", {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({fact: fact.fact, verdict: now}),
  });
  fact.verdict = now;
  mark(fact, buttons);
  showVerdicts(verdicts);
});

function mark(fact, buttons) {
  for (const [verdict, button] of Object.entries(buttons)) {
    button.setAttribute("aria-pressed", String(fact.verdict === verdict));
  }
}

function line(fact, center) {
  const end = (place, name) => fact.fact[place] === center ?
    make("strong", {}, name) :
    make("a", {href: `#${fact.fact[place]}`}, name);
  const buttons = {};
  for (const verdict of ["accept", "reject"]) {
    buttons[verdict] = make("button", {
      type: "button",
      "aria-label": `${verdict}: ${fact.head} ${fact.relation} ${fact.tail}`,
      onclick: () => decide(fact, verdict, buttons),
    }, verdict === "accept" ? "Accept" : "Reject");
  }
  mark(fact, buttons);
  const text = make("span", {class: "fact"}, end(0, fact.head),
    make("span", {class: "relation"}, ` ${fact.relation} `), end(2, fact.tail));
  const item = make("li", {}, text);
  if (fact.probability !== undefined) {
    item.append(make("span", {class: "faint"},
      `${(100 * fact.probability).toFixed(1)} %` +
        (fact.only ? ", the only entity that fits" : "")));
  }
  item.append(buttons.accept, buttons.reject);
  if (fact.proof?.length) {
    item.append(make("details", {}, make("summary", {}, "Proof"),
      make("ol", {}, ...fact.proof.map((step) => make("li", {}, step)))));
  }
  return item;
}

function list(title, facts, count, center) {
  const told = count > facts.length ? `${facts.length} of ${count}` : count;
  return make("div", {}, make("h3", {}, `${title} (${told})`),
    make("ul", {class: "plain facts"},
      ...facts.map((fact) => line(fact, center))));
}

const open = guard(async (id) => {
  const entity = await request(`/api/entity?id=${id}`);
  byId("name").textContent = entity.name;
  byId("lists").replaceChildren(
    list("Predicted", entity.predicted, entity.predicted.length, id),
    list("Implied by rules", entity.implied, entity.implied_count, id),
    list("Known", entity.known, entity.known_count, id),
  );
  draw(byId("graph"), entity.graph, id);
  byId("name").focus();
});

let timer = 0;
let asked = 0;
const search = guard(async () => {
  const mine = ++asked;
  const values = new URLSearchParams({q: byId("find").value});
  const {entities} = await request(`/api/search?${values}`);
  if (mine !== asked) return;
  byId("matches").replaceChildren(...entities.map(({id, name}) =>
    make("li", {}, make("a", {href: `#${id}`}, name))));
  const typed = byId("find").value.trim();
  byId("none").textContent = `No entity has “${typed}” in its name.`;
  byId("none").hidden = entities.length > 0 || !typed;
});

function follow() {
  const id = Number(location.hash.slice(1));
  if (location.hash.length > 1 && Number.isInteger(id)) open(id);
}

byId("find").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, 150);
});
window.addEventListener("hashchange", follow);
guard(async () => {
  const told = await request("/api/about");
  byId("about").textContent = `${told.name}: ${told.entities} entities, ` +
    `${told.relations} relations, ${told.rules} rules; predicted by ` +
    told.system;
  showVerdicts(told.verdicts);
  follow();
})();
