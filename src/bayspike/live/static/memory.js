// What the learner remembers: a bar per class before and after, the earlier classes over the lessons, one neuron.
import { lines, synapses } from "./canvas.js";
import { percent } from "./screen.js";

const find = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const share = (mark) => (mark && mark[1] ? mark[0] / mark[1] : null);

export class Memory {
  constructor(askNeuron) {
    this.state = null;
    this.askNeuron = askNeuron;
    find("neuron").addEventListener("input", () => this.wish());
    find("layer").addEventListener("change", () => { this.fillNeurons(); this.wish(); });
    Theme.onChange(() => { if (this.state) this.draw(); if (this.seen) this.neuron(this.seen); });
    new ResizeObserver(() => { if (this.state) this.drawLessons(); }).observe(find("lessons"));
  }
  show(state) {
    const changed = !this.state || this.state.history.length !== state.history.length || JSON.stringify(this.state.learner.layers) !== JSON.stringify(state.learner.layers);
    this.state = state;
    if (changed) { this.fillLayers(); this.wish(); }
    this.draw();
  }
  get rival() { return find("rival").value; }
  draw() {
    const { history, learner, own } = this.state;
    const unseen = Object.values(learner.unseen);
    const first = history[0].marks[own];
    find("judged").textContent = unseen.length === 0
      ? "There is nothing to judge it by yet."
      : `Judged on ${first.examples || "no"} examples that it never learnt from`
        + `${unseen.every(Boolean) ? "." : ", and, hatched, on those it was taught with where there are no others."}`;
    this.drawClasses();
    this.drawLessons();
    this.drawMarks();
  }
  drawClasses() {
    const { history, learner, own } = this.state;
    const now = history[history.length - 1], before = history.length > 1 ? history[history.length - 2] : null;
    find("classes").replaceChildren(...learner.classes.map((name) => {
      const box = make("div", "memo"), rows = make("div", "rows"), values = make("span", "value");
      box.dataset.class = name;
      const said = [];
      const track = (value, kinds, title) => {
        const line = make("div", "track"), fill = make("div", `fill ${kinds}${learner.unseen[name] === false ? " learnt" : ""}`);
        fill.style.width = `${100 * (value ?? 0)}%`;
        line.title = `${title}: ${value === null ? "not known" : percent(value)}`;
        line.append(fill);
        rows.append(line);
      };
      const past = before ? share(before.marks[own].classes[name]) : null;
      const present = share(now.marks[own].classes[name]);
      if (past !== null) { track(past, "before", "before the last lesson"); said.push(`${percent(past)} →`); }
      track(present, "", "now");
      said.push(present === null ? "not judged yet" : percent(present));
      box.dataset.now = present === null ? "" : String(present);
      if (this.rival) {
        const other = share(now.marks[this.rival].classes[name]);
        track(other, "other", this.state.rivals[this.rival]);
        said.push(other === null ? "" : `· ${percent(other)}`);
        box.dataset.rival = other === null ? "" : String(other);
      }
      values.textContent = said.join(" ");
      const label = make("span", "name", name);
      label.title = name;
      box.append(label, rows, values);
      return box;
    }));
  }
  drawLessons() {
    const { history, own } = this.state;
    const series = [{ values: history.map((each) => each.marks[own].accuracy), colour: Theme.colour("@own"), width: 2.5, dots: true }];
    if (this.rival) series.push({ values: history.map((each) => each.marks[this.rival]?.accuracy), colour: Theme.colour("@bad"), width: 2, dash: [5, 3], dots: true });
    const ticks = history.length < 12 ? history.map((each, at) => ({ at, text: at === 0 ? "start" : String(at) })) : [{ at: 0, text: "start" }, { at: history.length - 1, text: String(history.length - 1) }];
    lines(find("lessons"), series, Math.max(2, history.length), { ticks });
  }
  drawMarks() {
    const { history, own } = this.state;
    const number = (value, digits) => (value === null ? "–" : digits ? value.toFixed(digits) : percent(value));
    const rows = history.map((each, at) => {
      const row = make("tr");
      row.append(make("td", "", at === 0 ? each.about : `${at}. ${each.about}`));
      for (const [key, digits] of [["accuracy", 0], ["confidence", 0], ["ece", 3]]) {
        const cell = make("td", "n", number(each.marks[own][key], digits));
        if (this.rival) cell.append(" ", make("span", "wrong", number(each.marks[this.rival][key], digits)));
        row.append(cell);
      }
      return row;
    });
    find("marks").tBodies[0].replaceChildren(...rows.slice(-8));
  }
  fillLayers() {
    const hidden = this.state.learner.layers.slice(1);
    const chosen = Math.min(Number(find("layer").value) || 0, hidden.length - 1);
    find("layer").replaceChildren(...hidden.map((size, k) => { const option = make("option", "", `${k} (${size} neurons)`); option.value = String(k); return option; }));
    find("layer").value = String(chosen);
    this.fillNeurons();
  }
  fillNeurons() { find("neuron").max = this.state.learner.layers[1 + Number(find("layer").value)] - 1; }
  wish() {
    find("neuron-now").textContent = find("neuron").value;
    this.askNeuron(Number(find("layer").value), Number(find("neuron").value));
  }
  neuron(message) {
    this.seen = message;
    const shown = (value) => value.toPrecision(3).replace("-", "−");
    const [low, high] = synapses(find("mean"), message.mean, message.shape, true);
    const [surest, widest] = synapses(find("spread"), message.spread, message.shape, false);
    find("mean-note").textContent = `means, from ${shown(low)} (blue) to ${shown(high)} (orange)`;
    find("spread-note").textContent = widest === 0 ? "no doubt: a single network" : `standard deviations, from ${shown(surest)} to ${shown(widest)} (${Theme.isDark() ? "bright" : "dark"}: unsure)`;
  }
}
