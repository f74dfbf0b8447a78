// The state of the page: the query and whom it is put to. It lives in the
// address, so that a link holds all of it.

export const state = {
  members: [],
  same: [],
  system: "nvse",
  ranking: "",
  other: "",
  otherRanking: "",
  count: 10,
  relative: true,
};

export const LEAST = -2;
export const MOST = 2;
// Of "Not like this": more costs members of the set (RESULTS.md, negatives).
export const AWAY = -0.1;

const clamp = (weight) => Math.min(MOST, Math.max(LEAST, weight));

export function add(entity, weight = 1) {
  const known = state.members.find((member) => member.id === entity.id);
  if (known) {
    known.weight = clamp(weight);
  } else {
    const {id, name} = entity;
    state.members.push({id, name, weight: clamp(weight)});
  }
}

export function remove(id) {
  state.members = state.members.filter((member) => member.id !== id);
}

// Members as the server takes them: duplicates share a weight.
export function plain(members, duplicates) {
  const weights = new Map();
  for (const member of members) {
    const group = duplicates(member);
    for (const {id} of group) {
      weights.set(id, (weights.get(id) ?? 0) + member.weight / group.length);
    }
  }
  return [...weights].map(([id, weight]) => ({id, weight}));
}

// A query whose weights are all zero cannot be asked.
export const askable = () => state.members.some(({weight}) => weight !== 0);

export function toAddress() {
  const values = new URLSearchParams();
  for (const {id, weight} of state.members) values.append("e", `${weight}~${id}`);
  for (const group of state.same) {
    const pairs = group.map(({id, name}) => [id, name]);
    values.append("same", JSON.stringify(pairs));
  }
  values.set("system", state.system);
  if (state.ranking) values.set("ranking", state.ranking);
  if (state.other) values.set("other", state.other);
  if (state.other && state.otherRanking) {
    values.set("other-ranking", state.otherRanking);
  }
  if (state.count !== 10) values.set("count", state.count);
  if (!state.relative) values.set("relative", "0");
  return `#${values}`;
}

// Duplicates that an address names; what is not of their form is left out.
function groups(texts) {
  const read = texts.map((text) => {
    try {
      return JSON.parse(text);
    } catch {
      return null;
    }
  });
  const pair = (each) => Array.isArray(each) && each.length === 2 &&
    each.every((part) => typeof part === "string" && part);
  return read
    .filter((group) => Array.isArray(group) && group.length > 1 &&
      group.every(pair))
    .map((group) => group.map(([id, name]) => ({id, name})));
}

export function fromAddress(hash, model) {
  const values = new URLSearchParams(hash.slice(1));
  const names = new Map(state.members.map(({id, name}) => [id, name]));
  const systems = new Set(model.systems.map(({id}) => id));
  const rankings = new Set(model.rankings.map(({id}) => id));
  const among = (name, known, usual) =>
    known.has(values.get(name)) ? values.get(name) : usual;
  state.members = [];
  for (const value of values.getAll("e").slice(0, model.limits.members)) {
    const at = value.indexOf("~");
    const weight = Number(value.slice(0, at));
    const id = value.slice(at + 1);
    if (at < 1 || !id || !Number.isFinite(weight)) continue;
    add({id, name: names.get(id) ?? id}, weight);
  }
  state.same = groups(values.getAll("same"));
  state.system = among("system", systems, "nvse");
  state.ranking = among("ranking", rankings, model.ranking);
  state.other = among("other", systems, "");
  state.otherRanking = among("other-ranking", rankings, model.ranking);
  const count = Number(values.get("count"));
  state.count = [10, 25, 50, 100].includes(count) ? count : 10;
  state.relative = values.get("relative") !== "0";
}
