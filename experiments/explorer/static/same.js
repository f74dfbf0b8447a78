// Duplicates: entities that the reader says are one. A group counts as one
// member of the query and as one result; its first entity names it.

import {byId, make} from "./dom.js";
import {state} from "./query.js";

const groupOf = (id) =>
  state.same.find((group) => group.some((each) => each.id === id));

export const members = ({id, name}) => groupOf(id) ?? [{id, name}];

export function join(first, second) {
  const joined = [...members(first), ...members(second)]
    .map(({id, name}) => ({id, name}));
  const ids = new Set(joined.map(({id}) => id));
  state.same = state.same.filter(([{id}]) => !ids.has(id));
  state.same.push(joined.filter(
    ({id}, at) => joined.findIndex((each) => each.id === id) === at));
  // A group is one member of the query.
  const asked = state.members.filter(({id}) => ids.has(id)).slice(1);
  state.members = state.members.filter((member) => !asked.includes(member));
}

export function undo(id) {
  state.same = state.same.filter((group) => group[0].id !== id);
}

// A result for each group, at the place of its best; sentences are added.
export function fold(answer) {
  const kept = new Map();
  for (const result of answer.results) {
    const [{id, name}] = members(result);
    const known = kept.get(id);
    if (known) known.sentences += result.sentences;
    else kept.set(id, {...result, name, rank: kept.size + 1});
  }
  return {...answer, results: [...kept.values()]};
}

export const toFile = () => JSON.stringify(
  state.same.map((group) => group.map(({id}) => id)), null, 1) + "\n";

export function choose(entity, others, done) {
  const own = new Set(members(entity).map(({id}) => id));
  byId("page-title").textContent = `The same entity as ${entity.name}`;
  byId("page-body").replaceChildren(
    make("p", {class: "faint"},
      "The one you choose gives the name. Both count as one from then on."),
    make("p", {class: "words"}, ...others.filter(({id}) => !own.has(id)).map(
      (other) => make("button", {
        type: "button", class: "quiet",
        onclick: () => {
          byId("page").close();
          join(other, entity);
          done();
        },
      }, other.name))));
  byId("page").showModal();
}

export function show(undone) {
  byId("same").replaceChildren(...state.same.map((group) => {
    const names = group.map(({name}) => name).join(" = ");
    return make("li", {}, names, " ", make("button", {
      type: "button", class: "quiet", "aria-label": `Undo ${names}`,
      onclick: () => {
        undo(group[0].id);
        undone();
      },
    }, "Undo"));
  }));
  byId("merged").hidden = !state.same.length;
}
