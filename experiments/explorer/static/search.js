// Finding entities: a text field with a list below it, and pasted lists.

import * as api from "./api.js";
import {byId, debounce, make} from "./dom.js";

export function setUp(choose, fail) {
  const input = byId("find");
  const list = byId("found");
  let found = [];
  let foundFor = "";
  let wanted = false;  // Whether the first one is to be taken when it comes.
  let active = -1;
  let asked = null;

  function close() {
    asked?.abort();
    list.hidden = true;
    list.replaceChildren();
    active = -1;
    wanted = false;
    foundFor = "";
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    active = place;
    [...list.children].forEach((item, i) =>
      item.setAttribute("aria-selected", String(i === place)));
    const item = list.children[place];
    if (item?.id) {
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({block: "nearest"});
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  function take(entity) {
    if (!entity?.usable) return;
    input.value = "";
    close();
    choose(entity);
    input.focus();
  }

  function note(entity) {
    if (!entity.usable) return "no features";
    const count = entity.sentences;
    const told = count === 1 ? "1 sentence" : `${count} sentences`;
    return entity.match === "similar" ? `similar · ${told}` : told;
  }

  function show() {
    list.replaceChildren(...found.map((entity, i) => make("li", {
      id: `found-${i}`,
      role: "option",
      "aria-selected": "false",
      "aria-disabled": String(!entity.usable),
      // The field keeps the focus: a click must not take it away.
      onmousedown: (event) => event.preventDefault(),
      onclick: () => take(entity),
    }, make("span", {}, entity.name), make("small", {}, note(entity)))));
    if (!found.length) {
      list.append(make("li", {class: "faint", role: "option",
        "aria-disabled": "true"}, "No entity has a name like this."));
    }
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(found.findIndex(({usable}) => usable));
  }

  const look = debounce(async () => {
    const text = input.value.trim();
    if (!text) return close();
    asked?.abort();
    asked = new AbortController();
    try {
      const answer = await api.entities(text, asked.signal);
      if (input.value.trim() !== text) return;
      found = answer.entities;
      foundFor = text;
      show();
      if (wanted) take(found[active]);
      wanted = false;
    } catch (error) {
      if (error.name !== "AbortError") fail(error);
    }
  }, 80);

  input.addEventListener("input", () => {
    wanted = false;
    look();
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step && !list.hidden && found.length) {
      event.preventDefault();
      mark((active + step + found.length) % found.length);
    } else if (event.key === "Enter" && input.value.trim()) {
      event.preventDefault();
      // What is shown may still belong to what was typed before.
      if (foundFor === input.value.trim()) take(found[active]);
      else wanted = true;
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
}

export function setUpPaste(addAll, fail) {
  const text = byId("paste-text");
  const report = byId("paste-report");

  function unknown({name, ambiguous, nearest}) {
    const line = make("p", {}, ambiguous
      ? `“${name}” may be several. ` : `“${name}” is not there. `);
    const usable = nearest.filter((entity) => entity.usable);
    const names = usable.map((entity) => entity.name);
    const label = ({id, name}) =>
      names.indexOf(name) < names.lastIndexOf(name) ? `${name} (${id})` : name;
    if (usable.length) line.append(ambiguous ? "Choose " : "Did you mean ");
    usable.forEach((entity) => line.append(make("button", {
      type: "button",
      class: "quiet",
      onclick: () => {
        addAll([{...entity, weight: 1}]);
        line.remove();
      },
    }, label(entity)), " "));
    return line;
  }

  byId("paste-add").addEventListener("click", async () => {
    if (!text.value.trim()) return;
    try {
      const answer = await api.resolve(text.value);
      const usable = answer.entities.filter((entity) => entity.usable);
      const idle = answer.entities.filter((entity) => !entity.usable);
      const added = addAll(usable);
      text.value = "";
      report.replaceChildren(
        make("p", {}, `Added ${added}.`),
        ...idle.map(({name}) =>
          make("p", {}, `${name} has no features and cannot be asked.`)),
        ...answer.unknown.map(unknown));
    } catch (error) {
      fail(error);
    }
  });
}
