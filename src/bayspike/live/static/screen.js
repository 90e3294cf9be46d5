// The signal being watched: spikes as picture and raster, bars with the members' votes, curves, and the verdict.
import { bytesOf, faded, lines, Raster } from "./canvas.js";

const find = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
export const percent = (value) => `${(100 * value).toFixed(value > 0.9995 || value < 0.0005 ? 0 : 1)} %`;
const FADE = 0.72;

export class Screen {
  constructor() {
    this.raster = new Raster(find("raster"));
    this.rival = "";
    this.rivalNames = {};
    this.clear();
    find("step").addEventListener("input", () => { this.follow = false; this.show(Number(find("step").value)); });
    Theme.onChange(() => this.drawCurve());
    new ResizeObserver(() => this.drawCurve()).observe(find("curve"));
  }
  clear() {
    this.input = null;
    this.steps = [];
    this.follow = true;
    find("bars").replaceChildren();
    find("doubt").textContent = "";
    find("verdict").textContent = "Draw something, play a sample, or drop a file.";
    find("step-now").textContent = "0";
    find("step-of").textContent = "of 0";
    this.raster.reset(1, 1);
  }
  begin(input) {
    this.clear();
    this.input = input;
    this.raster.reset(input.steps, input.inputs);
    Object.assign(find("step"), { max: input.steps, value: 1 });
    find("step-of").textContent = `of ${input.steps}`;
    find("verdict").textContent = `Watching ${input.name} …`;
    this.rows = input.classes.map((name) => this.row(name));
    find("bars").replaceChildren(...this.rows.map((each) => each.row));
    this.drawCurve();
  }
  row(name) {
    const row = make("div", "bar"), track = make("div", "track");
    row.dataset.class = name;
    const fill = make("div", "fill"), rival = make("div", "rival"), value = make("span", "value", "");
    track.append(fill, rival);
    row.append(make("span", "name", name), track, value);
    row.firstChild.title = name;
    return { row, track, fill, rival, value, dots: [] };
  }
  add(step) {
    if (!this.input) return;
    step.bits = bytesOf(step.spikes);
    this.steps.push(step);
    this.raster.add(step.time, (i) => (step.bits[i >> 3] >> (7 - (i & 7))) & 1);
    if (this.follow) { find("step").value = step.time; this.ask(); }
  }
  // At most one drawing a frame, however fast the steps come.
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.show(this.steps[this.steps.length - 1]?.time ?? 0); });
  }
  show(time) {
    const place = this.steps.findIndex((each) => each.time === time);
    if (place < 0) return;
    const step = this.steps[place];
    this.now = place;
    find("step-now").textContent = String(step.time);
    this.drawPicture(place);
    this.drawBars(step);
    this.drawVerdict(step);
    this.drawCurve();
  }
  drawPicture(place) {
    const frame = this.input.frame ?? this.input.shape;
    const drawn = frame.reduce((a, b) => a * b, 1);
    const light = new Float32Array(drawn <= this.input.inputs ? drawn : this.input.inputs);
    for (const { bits } of this.steps.slice(Math.max(0, place - 11), place + 1)) {
      for (let i = 0; i < light.length; i++) light[i] = Math.max(light[i] * FADE, (bits[i >> 3] >> (7 - (i & 7))) & 1);
    }
    faded(find("picture"), light, drawn === light.length ? frame : [light.length]);
  }
  drawBars(step) {
    const best = step.probabilities.indexOf(Math.max(...step.probabilities));
    this.rows.forEach(({ row, track, fill, rival, value, dots }, k) => {
      const p = step.probabilities[k];
      fill.style.width = `${100 * p}%`;
      value.textContent = percent(p);
      row.dataset.p = String(p);
      row.dataset.time = String(step.time);
      row.classList.toggle("best", k === best);
      row.classList.toggle("inside", step.inside[k]);
      while (dots.length < step.members.length) {
        const dot = make("i", "dot");
        dot.style.top = `${2 + (14 * dots.length) / Math.max(1, step.members.length - 1)}px`;
        track.append(dot);
        dots.push(dot);
      }
      step.members.forEach((member, m) => { dots[m].style.left = `${100 * member[k]}%`; });
      const other = step.rivals[this.rival];
      rival.hidden = !other;
      if (other) rival.style.left = `${100 * other[k]}%`;
    });
    const other = step.rivals[this.rival];
    const beside = other ? ` ${this.rivalNames[this.rival]} (orange line) says ${this.name(other)} with ${percent(Math.max(...other))}.` : "";
    find("doubt").textContent = `Disagreement of the members ${step.disagreement.toFixed(3)} nats; `
      + `${step.inside.filter(Boolean).length} of ${step.inside.length} classes in the set.${beside}`;
  }
  name(values) { return this.input.classes[values.indexOf(Math.max(...values))]; }
  drawVerdict(step) {
    const word = this.name(step.probabilities) ?? "nothing yet";
    const sentence = {
      waiting: [`It leans to `, word, `, ${percent(step.confidence)} sure`],
      commits: [`It commits to `, word, `, ${percent(step.confidence)} sure`],
      abstains: [`It abstains; the likeliest would be `, word, `, ${percent(step.confidence)}`],
      foreign: ["This looks ", "foreign", `; the likeliest would be ${word}, ${percent(step.confidence)}`],
    }[step.verdict];
    const since = step.since !== null ? ` (decided at t = ${step.since})` : "";
    const { truth } = this.input;
    const verdict = find("verdict");
    verdict.dataset.verdict = step.verdict;
    verdict.replaceChildren(`t = ${step.time}. ${sentence[0]}`, make("b", "", sentence[1]), `${sentence[2]}${since}.`);
    if (truth !== null) verdict.append(` It is a ${truth}`, make("span", word === truth ? "right" : "wrong", word === truth ? " ✓" : " ✗"));
  }
  drawCurve() {
    const steps = this.input?.steps ?? 1;
    const last = this.steps[this.now ?? 0];
    const order = last ? [...last.probabilities.keys()].sort((a, b) => last.probabilities[a] - last.probabilities[b]) : [];
    const shown = this.steps.slice(0, (this.now ?? -1) + 1);
    const at = (pick) => {
      const values = Array(steps).fill(null);
      for (const step of shown) values[step.time - 1] = pick(step);
      return values;
    };
    const series = order.map((k, place) => {
      const rank = order.length - 1 - place;
      const colour = rank === 0 ? Theme.colour("@own") : rank === 1 ? Theme.colour("@c2") : Theme.colour("@muted:0.5");
      return { values: at((step) => step.probabilities[k]), colour, width: rank === 0 ? 3 : 1.5 };
    });
    if (this.rival && last?.rivals[this.rival]) {
      const k = order[order.length - 1];
      series.push({ values: at((step) => step.rivals[this.rival][k]), colour: Theme.colour("@bad"), width: 1.5, dash: [5, 3] });
    }
    const marks = last?.since ? [{ at: last.since - 1, text: "commits" }] : [];
    lines(find("curve"), series, steps, { marks, ticks: [{ at: 0, text: "t = 1" }, { at: steps - 1, text: String(steps) }] });
  }
}
