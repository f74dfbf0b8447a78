// The JSON API: one function for each address.

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is it still running?");
  }
  const value = await response.json().catch(() => null);
  if (!response.ok || value === null) {
    throw new Error(value?.error ?? `The server answered ${response.status}.`);
  }
  return value;
}

function post(path, values, signal) {
  return request(path, {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify(values),
    signal,
  });
}

export const model = () => request("/api/model");
export const entities = (text, signal) => {
  const values = new URLSearchParams({q: text, limit: "8"});
  return request(`/api/entities?${values}`, {signal});
};
export const resolve = (text) => post("/api/resolve", {text});
export const expand = (values, signal) => post("/api/expand", values, signal);
export const reasons = (values, signal) => post("/api/reasons", values, signal);
export const concept = (values, signal) => post("/api/concept", values, signal);

export const chances = (values, signal) => post("/api/chances", values, signal);
export const entity = (id) =>
  request(`/api/entity?${new URLSearchParams({id})}`);
export const doc = (name) =>
  request(`/api/document?${new URLSearchParams({name})}`);

// An answer's sentences are asked for in parts, so that the first come soon.
const PART = 10;

export async function sentences(query, ids, show, signal) {
  for (let start = 0; start < ids.length; start += PART) {
    const values = {
      ...query, entities: ids.slice(start, start + PART), sentences: 2,
    };
    const found = await post("/api/sentences", values, signal);
    show(found.entities);
  }
}
