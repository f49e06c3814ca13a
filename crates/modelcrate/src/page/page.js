
"use strict";
// Everything on the page is there without this script, which only helps to find it.

const byId = (id) => document.getElementById(id);

function theme() {
  const button = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = (isDark) => button.setAttribute("aria-pressed", String(isDark));
  show(dark.matches);
  dark.addEventListener("change", () => show(dark.matches));
  button.hidden = false;
  button.addEventListener("click", () => {
    const isDark = button.getAttribute("aria-pressed") !== "true";
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    show(isDark);
  });
}

const order = new Intl.Collator("en", { numeric: true });

// A cell is ordered by its number, where it has one; cells without come last.
function keyOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.querySelector("summary") ?? cell;
  return text.textContent.trim();
}

function compare(one, other) {
  const isEmpty = [one, other].map((key) => key === "");
  if (isEmpty[0] !== isEmpty[1]) return null;
  return typeof one === "number" ? one - other : order.compare(one, other);
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    if (head.textContent === "histogram") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
      rows.sort(([one], [other]) => {
        const found = compare(one, other);
        return found === null ? (one === "" ? 1 : -1) : down ? -found : found;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}

function filter() {
  const form = byId("tensor-filter");
  if (!form) return;
  const rows = [...byId("tensor-table").tBodies[0].rows].map((row) => {
    const cells = [...row.cells].slice(0, 3).map((cell) => {
      const cut = cell.querySelector("span[title]");
      return cut ? cut.title : (cell.querySelector("summary") ?? cell).textContent;
    });
    return [cells.join(" ").toLowerCase(), row];
  });
  const [text, suspects, count] = ["tensor-text", "tensor-suspects", "tensor-count"].map(byId);
  suspects.parentElement.hidden = !rows.some(([, row]) => row.classList.contains("suspect"));
  const show = () => {
    const words = text.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const [said, row] of rows) {
      row.hidden = !words.every((word) => said.includes(word)) || (suspects.checked && !row.classList.contains("suspect"));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} tensors`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", show);
  // What leads to a row that is filtered out shows all of them.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#t']");
    if (!link || !byId(link.hash.slice(1))?.hidden) return;
    form.reset();
    show();
  });
  show();
}

// What moves other text or cannot be seen is shown by its number.
const hidden = /[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;
const shown = (text) => text.replace(hidden, (found) => `U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = shown(text);
  made.append(...children);
  return made;
}

function button(text, action) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

// A graph in its frame: one drawing of several, a scale, and a node that is looked at.
class View {
  constructor(view) {
    this.frame = view.querySelector(".graph-frame");
    this.details = view.querySelector(".graph-details");
    this.level = view.querySelector(".level");
    this.find = view.querySelector(".find");
    this.found = view.querySelector(".found");
    this.templates = new Map([...view.querySelectorAll("template")].map((one) => [one.dataset.level, one]));
    this.scale = 1;
    this.take();
    const tools = view.querySelector(".filter");
    tools.hidden = false;
    tools.addEventListener("submit", (event) => event.preventDefault());
    this.level?.addEventListener("change", () => this.show(this.level.value));
    this.find.addEventListener("input", () => this.search());
    this.find.addEventListener("keydown", (event) => event.key === "Enter" && this.next());
    tools.querySelector(".in").addEventListener("click", () => this.zoom(1.25));
    tools.querySelector(".out").addEventListener("click", () => this.zoom(0.8));
    tools.querySelector(".fit").addEventListener("click", () => this.fit());
    this.frame.addEventListener("click", (event) => this.clicked(event));
    this.frame.addEventListener("dblclick", () => this.open());
    this.frame.addEventListener("keydown", (event) => this.key(event));
    this.frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.drag();
  }

  // Takes over the drawing that is in the frame.
  take() {
    this.svg = this.frame.querySelector("svg");
    const data = JSON.parse(this.frame.querySelector("script").textContent);
    this.values = data.values.map(([name, type, constant]) => ({ name, type, constant, from: null, to: [] }));
    this.nodes = data.nodes.map(([operator, name, group, isGroup, inputs, outputs, attributes], at) => {
      inputs.forEach((value) => value !== null && this.values[value].to.push(at));
      outputs.forEach((value) => value !== null && (this.values[value].from = at));
      return { operator, name, group, isGroup, inputs, outputs, attributes };
    });
    this.boxes = new Map([...this.svg.querySelectorAll(".node[data-node]")].map((box) => [Number(box.dataset.node), box]));
    const { width, height } = this.svg.viewBox.baseVal;
    this.size = { width, height };
    this.selected = null;
    this.details.hidden = true;
    this.search();
    this.resize(this.scale);
  }

  show(level) {
    const old = [...this.templates].find(([, template]) => template.content.childNodes.length === 0)[1];
    old.content.append(...this.frame.childNodes);
    this.frame.append(...this.templates.get(level).content.childNodes);
    this.level.value = level;
    this.take();
  }

  resize(scale) {
    this.scale = Math.min(4, Math.max(0.05, scale));
    this.svg.setAttribute("width", this.size.width * this.scale);
    this.svg.setAttribute("height", this.size.height * this.scale);
  }

  // Keeps what is at a point of the frame where it is.
  zoom(factor, x = this.frame.clientWidth / 2, y = this.frame.clientHeight / 2) {
    const before = this.scale;
    const place = { x: this.frame.scrollLeft + x, y: this.frame.scrollTop + y };
    this.resize(before * factor);
    const grown = this.scale / before;
    this.frame.scrollTo({ left: place.x * grown - x, top: place.y * grown - y, behavior: "instant" });
  }

  fit() {
    this.resize(Math.min(1, this.frame.clientWidth / this.size.width, this.frame.clientHeight / this.size.height));
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = this.frame.getBoundingClientRect();
    this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.clientX - frame.left, event.clientY - frame.top);
  }

  drag() {
    let from = null;
    this.frame.addEventListener("pointerdown", (event) => {
      this.isDragged = false;
      if (event.button !== 0 || event.pointerType === "touch") return;
      const { scrollLeft, scrollTop } = this.frame;
      from = { x: event.clientX, y: event.clientY, scrollLeft, scrollTop };
    });
    addEventListener("pointermove", (event) => {
      if (!from) return;
      const moved = { x: event.clientX - from.x, y: event.clientY - from.y };
      this.isDragged ||= Math.hypot(moved.x, moved.y) > 4;
      this.frame.scrollTo({ left: from.scrollLeft - moved.x, top: from.scrollTop - moved.y, behavior: "instant" });
    });
    addEventListener("pointerup", () => { from = null; });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (by) => this.select(((this.selected ?? -by) + by + this.nodes.length) % this.nodes.length);
    const actions = {
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
      n: () => step(1), p: () => step(-1), Enter: () => this.open(), Escape: () => this.select(null),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  clicked(event) {
    const box = event.target.closest(".node[data-node]");
    if (box && !this.isDragged) this.select(Number(box.dataset.node), false);
  }

  // A group becomes what is in it, in the next drawing.
  open() {
    const node = this.nodes[this.selected];
    if (!node?.isGroup || !this.level) return;
    const next = this.level.options[this.level.selectedIndex + 1];
    if (!next) return;
    this.show(next.value);
    const inside = this.nodes.findIndex(({ group }) => group === node.group || group.startsWith(`${node.group}/`));
    if (inside >= 0) this.select(inside);
  }

  select(at, isMoved = true) {
    this.svg.querySelectorAll(".selected, .near").forEach((one) => one.classList.remove("selected", "near"));
    this.selected = at;
    this.details.hidden = at === null;
    if (at === null) return;
    const box = this.boxes.get(at);
    box.classList.add("selected");
    this.svg.querySelectorAll(`.edge[data-from="${at}"], .edge[data-to="${at}"]`).forEach((edge) => edge.classList.add("near"));
    if (isMoved) {
      const rect = box.querySelector("rect");
      const [x, y] = ["x", "y"].map((name) => Number(rect.getAttribute(name)) * this.scale);
      this.frame.scrollTo({ left: x - this.frame.clientWidth / 3, top: y - this.frame.clientHeight / 3 });
    }
    this.describe(this.nodes[at]);
  }

  describe(node) {
    const list = element("dl");
    const add = (term, ...said) => list.append(element("dt", term), element("dd", "", ...said));
    if (this.boxes.get(this.selected).classList.contains("changed")) add("change", "not as in the older file");
    if (node.name) add("name", shown(node.name));
    if (node.group && !node.isGroup) add("group", shown(node.group));
    for (const [key, value] of Object.entries(node.attributes)) add(node.isGroup ? `${key} ×` : key, shown(value));
    node.inputs.forEach((value, at) => add(`input ${at}`, ...this.said(value, true)));
    node.outputs.forEach((value, at) => add(`output ${at}`, ...this.said(value, false)));
    const title = element("h3", node.operator);
    this.details.replaceChildren(title, list);
    const hasNext = this.level && this.level.selectedIndex + 1 < this.level.options.length;
    if (node.isGroup && hasNext) this.details.append(button("Open the group", () => this.open()));
  }

  // Says what a value is, and where it comes from or goes to.
  said(at, isInput) {
    if (at === null) return ["none"];
    const { name, type, constant, from, to } = this.values[at];
    const parts = [shown([name ?? "", type, constant === null ? "" : `= ${constant}`].filter(Boolean).join(" "))];
    const others = isInput ? [from].filter((node) => node !== null) : to;
    for (const other of others.slice(0, 20)) {
      const { operator, name: called } = this.nodes[other];
      parts.push(" ", button(`${isInput ? "from" : "to"} ${called ?? operator}`, () => this.select(other)));
    }
    if (others.length > 20) parts.push(` and ${others.length - 20} more`);
    return parts;
  }

  search() {
    const wanted = this.find.value.toLowerCase();
    this.matches = [];
    this.boxes.forEach((box, at) => {
      const { operator, name, outputs } = this.nodes[at];
      const texts = [operator, name, ...outputs.map((value) => value === null ? "" : this.values[value].name)];
      const isMatch = wanted !== "" && texts.some((text) => text?.toLowerCase().includes(wanted));
      box.classList.toggle("match", isMatch);
      if (isMatch) this.matches.push(at);
    });
    this.found.textContent = wanted === "" ? "" : `${this.matches.length} of ${this.nodes.length} nodes`;
  }

  next() {
    if (this.matches.length === 0) return;
    const place = this.matches.indexOf(this.selected);
    this.select(this.matches[(place + 1) % this.matches.length]);
  }
}

theme();
document.querySelectorAll("table.sortable").forEach(sortable);
filter();
document.querySelectorAll(".graph-view").forEach((view) => new View(view));
