// The page: what it is told by the server is shown, what a person does is sent. Texts are only ever text, never markup.
import { grey, bytesOf } from "./canvas.js";
import { Connection } from "./line.js";
import { Memory } from "./memory.js";
import { Pad } from "./pad.js";
import { Screen } from "./screen.js";

const find = (id) => document.getElementById(id);
const send = (message) => line.send(message);
const screen = new Screen();
const memory = new Memory((layer, neuron) => send({ do: "neuron", layer, neuron }));
const pad = new Pad(find("pad"), find("pad-hint"), (strokes) => send({ do: "draw", strokes }), () => allow());
let state = null;
let pen = false;
let asked = null; // the last input that was begun

function note(text, kind = "note") {
  const box = find("notes"), paragraph = document.createElement("p");
  paragraph.textContent = text;
  paragraph.className = kind;
  box.replaceChildren(...[...box.children].slice(-1), paragraph);
  setTimeout(() => paragraph.remove(), kind === "problem" ? 15000 : 6000);
}

function showState() {
  const { learner, lesson } = state;
  const classes = learner.classes.join(", ");
  find("about").textContent = `${learner.classes.length} classes (${classes.length > 80 ? `${classes.slice(0, 80)}…` : classes || "none yet"}) · ${learner.layers.join(" → ")} neurons, `
    + `${learner.time} time-steps · ${learner.rule}, committee of ${learner.members} · taught ${learner.data}${learner.simulated ? " (simulated data)" : ""}`;
  find("pad-box").hidden = !state.draws;
  const longest = Math.max(2, ...learner.classes.map((name) => name.length)); // bars begin at one place, and can be compared
  document.documentElement.style.setProperty("--names", `${Math.min(longest + 1, 11)}ch`);
  find("words").replaceChildren(...learner.classes.map((name) => { const option = document.createElement("option"); option.value = name; return option; }));
  find("tray").replaceChildren(...state.tray.map(({ word, grey: content, shape }, place) => {
    const figure = document.createElement("figure"), button = document.createElement("button"), canvas = document.createElement("canvas"), caption = document.createElement("figcaption");
    button.type = "button";
    button.title = "Take it out of the lesson";
    button.disabled = !pen;
    button.addEventListener("click", () => send({ do: "remove", place }));
    caption.textContent = word;
    button.append(canvas);
    figure.append(button, caption);
    grey(canvas, bytesOf(content), shape);
    return figure;
  }));
  const busy = lesson !== null;
  find("progress").hidden = !busy;
  if (busy) {
    if (lesson.phase === "learning" && lesson.batches) { find("progress").max = lesson.batches; find("progress").value = lesson.batch; } else find("progress").removeAttribute("value");
    find("lesson").textContent = lesson.phase === "learning" ? `Learning ${lesson.name}: mini-batch ${lesson.batch} of ${lesson.batches || "…"}` : `Judging after ${lesson.name} …`;
  } else {
    find("lesson").textContent = state.tray.length ? `${state.tray.length} in the lesson.` : "The lesson is empty: Teach takes what is on screen.";
  }
  find("give").textContent = state.tray.length > 1 ? `Teach all ${state.tray.length}` : "Teach";
  const shown = (value) => `${Math.round(100 * value)} %`;
  if (document.activeElement !== find("pace")) find("pace").value = state.pace;
  find("pace-now").textContent = String(Math.round(state.pace));
  if (document.activeElement !== find("confidence")) find("confidence").value = state.settings.confidence;
  find("confidence-now").textContent = shown(state.settings.confidence);
  const promise = learner.why_no_sets || `A frame is in the set of classes: it holds the right one with probability ${shown(state.settings.coverage)}, if the input is like the ${learner.held_back} held back.`;
  const foreign = learner.tells_foreign ? ` ${shown(learner.false_alarm)} of its own inputs are called foreign.` : " Too few examples were held back to tell foreign inputs.";
  find("legend").textContent = `Bar: the committee. Dots: its ${learner.members} members. ${promise}${foreign}`;
  find("kept").textContent = (state.kept ? "All that was learnt is kept." : "Something learnt is not saved yet; Ctrl-C in the terminal saves it too.")
    + (state.file ? ` File: ${state.file}.` : " Save makes a new file.") + (state.recording ? ` Everything is written down in ${state.recording}.` : "")
    + " The file holds your drawings as they are: give it to those only who may see them.";
  const rival = find("rival"), chosen = rival.value;
  if (rival.options.length === 1) {
    for (const [name, label] of Object.entries(state.rivals)) { const option = document.createElement("option"); option.value = name; option.textContent = label; rival.append(option); }
    rival.value = chosen;
  }
  screen.rivalNames = state.rivals;
  memory.show(state);
  allow();
}

// What may be pressed now: a page without the pen only looks.
function allow() {
  const busy = !state || state.lesson !== null;
  pad.enabled = pen;
  for (const id of ["clear", "sample", "again", "pace", "confidence", "file", "save", "word"]) find(id).disabled = !pen;
  for (const id of ["file", "load"]) find(id).parentElement.classList.toggle("disabled", !pen);
  const drawn = pad.strokes.length > 0;
  find("add").disabled = !pen || !(asked?.teachable || drawn);
  find("add").title = asked?.judged ? "This one judges the learner, so it is not taught" : "";
  find("give").disabled = !pen || busy || (!state.tray.length && !asked?.teachable && !drawn);
  find("undo").disabled = !pen || !state?.can_undo;
  find("load").disabled = !pen || busy;
}

const hear = {
  state(message) { state = message; showState(); },
  pen({ yours, taken }) {
    pen = yours;
    find("watching").hidden = yours;
    find("watching-text").textContent = taken ? "Another page has the pen; this one watches." : "The page that had the pen has gone; this one watches.";
    if (state) showState(); else allow();
  },
  input(message) { asked = message; screen.begin(message); if (message.name !== "the drawing" || !pad.done) pad.clear(); allow(); },
  step(message) { screen.add(message); },
  clear() { asked = null; screen.clear(); pad.clear(); allow(); },
  lesson({ lesson }) { if (state) { state.lesson = lesson; showState(); } },
  note({ text, kind }) { note(text, kind); },
  neuron(message) { memory.neuron(message); },
};
const line = new Connection(
  (message) => { document.body.dataset.connected = "yes"; hear[message.tell]?.(message); },
  () => { document.body.dataset.connected = ""; pen = false; find("about").textContent = "The server has gone; this page waits for it to come back."; allow(); },
);

find("clear").addEventListener("click", () => { pad.clear(); send({ do: "stop" }); });
find("sample").addEventListener("click", () => send({ do: "sample" }));
find("again").addEventListener("click", () => send({ do: "again" }));
find("take").addEventListener("click", () => send({ do: "take" }));
find("add").addEventListener("click", () => {
  pad.flush();
  send({ do: "add", word: find("word").value });
  if (find("word").value.trim()) pad.clear();
});
find("give").addEventListener("click", () => {
  if (!state.tray.length) pad.flush();
  send({ do: "teach", word: find("word").value });
});
find("word").addEventListener("keydown", (event) => { if (event.key === "Enter") find("add").click(); });
find("undo").addEventListener("click", () => send({ do: "undo" }));
find("save").addEventListener("click", () => send({ do: "save" }));
find("pace").addEventListener("input", (event) => send({ do: "pace", value: Number(event.target.value) }));
find("confidence").addEventListener("input", (event) => send({ do: "confidence", value: Number(event.target.value) }));
find("rival").addEventListener("change", (event) => { screen.rival = event.target.value; if (screen.steps.length) screen.show(Number(find("step").value)); if (state) memory.draw(); });

async function drop(file) {
  if (!file) return;
  if (!pen) { note("Another page has the pen: press Take over to write here.", "problem"); return; }
  try {
    const { good, text } = await line.drop(file);
    note(text, good ? "note" : "problem");
  } catch { note(`${file.name} could not be sent.`, "problem"); }
}
for (const id of ["file", "load"]) find(id).addEventListener("change", (event) => { drop(event.target.files[0]); event.target.value = ""; });
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", kind === "dragover");
    if (kind === "drop") drop(event.dataTransfer.files[0]);
  });
}
allow();
