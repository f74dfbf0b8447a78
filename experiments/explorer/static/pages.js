// Dialogs: an entity with its sentences and neighbors, and a document.

import * as api from "./api.js";
import {byId, make} from "./dom.js";
import {AWAY} from "./query.js";
import {feature} from "./reasons.js";

function open(title, ...parts) {
  byId("page-title").textContent = title;
  byId("page-body").replaceChildren(...parts);
  if (!byId("page").open) byId("page").showModal();
}

const failed = (error) => open("Not found", make("p", {}, error.message));

const plain = (label, action) =>
  make("button", {type: "button", class: "quiet", onclick: action}, label);

export async function openEntity(id, act) {
  let entity;
  try {
    entity = await api.entity(id);
  } catch (error) {
    return failed(error);
  }
  const choose = (weight) => () => {
    byId("page").close();
    act(entity, weight);
  };
  open(entity.name,
    make("p", {class: "faint"}, `${entity.sentences} sentences; id ${id}`),
    make("p", {class: "row"}, plain("Add to query", choose(1)),
      plain("Not like this", choose(AWAY))),
    make("h3", {}, "Features of greatest weight"),
    make("p", {class: "words"}, ...entity.features.map(feature)),
    make("h3", {}, "Nearest entities"),
    make("p", {class: "words"}, ...entity.near.map((each) =>
      plain(each.name, () => openEntity(each.id, act)))),
    make("h3", {}, "Sentences"),
    make("ol", {}, ...entity.texts.map(({text, doc}) =>
      make("li", {}, text, " ",
        doc ? plain(doc, () => openDocument(doc)) : null))));
}

export async function openDocument(name) {
  let found;
  try {
    found = await api.doc(name);
  } catch (error) {
    return failed(error);
  }
  open(name,
    make("p", {class: "faint"}, "Sentences that the model has, in order."),
    make("ol", {}, ...found.texts.map((text) => make("li", {}, text))),
    found.more ? make("p", {}, `and ${found.more} more`) : null);
}
