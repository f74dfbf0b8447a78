// The graph around an entity: the entity in the middle, others on a circle.

const SPACE = "http://www.w3.org/2000/svg";

function shape(tag, properties, text = null) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(properties)) {
    element.setAttribute(name, value);
  }
  if (text !== null) element.textContent = text;
  return element;
}

const shorten = (name) => name.length > 18 ? `${name.slice(0, 17)}…` : name;

export function draw(svg, graph, center) {
  const others = graph.nodes.filter(({id}) => id !== center);
  const places = new Map([[center, [0, 0]]]);
  others.forEach(({id}, i) => {
    const turn = 2 * Math.PI * i / others.length;
    places.set(id, [120 * Math.cos(turn), 120 * Math.sin(turn)]);
  });
  const parts = [];
  for (const edge of graph.edges) {
    const [x1, y1] = places.get(edge.from);
    const [x2, y2] = places.get(edge.to);
    const line = shape("line", {
      x1, y1, x2, y2, class: edge.implied ? "edge implied" : "edge",
    });
    line.append(shape("title", {}, edge.relation));
    parts.push(line);
  }
  for (const {id, name} of graph.nodes) {
    const [x, y] = places.get(id);
    const link = shape("a", {href: `#${id}`});
    link.append(
      shape("circle", {cx: x, cy: y, r: id === center ? 7 : 4, class: "node"}),
      shape("text", {x, y: y - 8, "text-anchor": "middle"}, shorten(name)),
      shape("title", {}, name),
    );
    parts.push(link);
  }
  svg.replaceChildren(...parts);
}
