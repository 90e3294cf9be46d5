// A sample's spikes playing on a canvas beside the probabilities that every method gives as they arrive.
function buildStream(box, stream) {
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const nameOf = (k) => stream.classes[k] ?? String(k);
  const frames = stream.frames.map((packed) => Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)));
  const spike = (sample, t, i) => (frames[sample][t * stream.bytes + (i >> 3)] >> (7 - (i & 7))) & 1;
  const steps = stream.time;
  const state = { sample: 0, step: steps };

  const heading = make("h3", "", `${stream.title}, seed ${stream.seed}`);
  if (stream.simulated) heading.append(" ", make("span", "badge", "simulated data"));
  const picker = make("div", "picker");
  const buttons = stream.labels.map((label, sample) => {
    const button = make("button", "", sample ? nameOf(label) : `hard: ${nameOf(label)}`);
    button.type = "button";
    button.addEventListener("click", () => { state.sample = sample; draw(); });
    picker.append(button);
    return button;
  });
  const slider = make("div", "slider");
  const play = make("button", "play", "▶");
  play.type = "button";
  play.setAttribute("aria-label", "Play");
  const input = make("input");
  Object.assign(input, { type: "range", min: 1, max: steps, value: steps, step: 1 });
  input.setAttribute("aria-label", "time-step t");
  const output = make("output", "", String(steps));
  slider.append(play, make("span", "", "t"), input, output, make("span", "of", `of ${steps}`));

  const screen = make("div", "screen");
  const canvas = make("canvas");
  const models = make("div", "models");
  const panes = stream.methods.map((method) => {
    const pane = make("div", "model");
    pane.dataset.views = JSON.stringify(method.views);
    const decision = make("div", "note");
    const plot = make("div", "plot");
    pane.append(make("div", "name", method.name), decision, plot);
    models.append(pane);
    return { method, pane, decision, plot };
  });
  const left = make("div", "eye");
  left.append(canvas);
  screen.append(left, models);
  box.append(heading, picker, slider, screen);

  const picture = stream.shape.length === 3;
  const [channels, rows, columns] = picture ? stream.shape : [1, stream.inputs, steps];
  canvas.width = columns;
  canvas.height = rows;
  const side = Math.max(rows, columns);
  canvas.style.aspectRatio = picture ? `${columns} / ${rows}` : `${Math.max(columns, side)} / ${Math.max(rows, side * 0.7)}`;
  canvas.setAttribute("role", "img");

  // On events blue, off events orange, a spike's light halving every other step, so that motion can be seen.
  function drawPicture() {
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = rows * columns;
    const light = new Float32Array(channels * pixels);
    for (let t = Math.max(0, state.step - 12); t < state.step; t++) {
      for (let i = 0; i < light.length; i++) light[i] = Math.max(light[i] * 0.72, spike(state.sample, t, i));
    }
    for (let i = 0; i < pixels; i++) {
      const off = channels === 2 ? light[i] : 0;
      const on = channels === 2 ? light[pixels + i] : light[i];
      const at = 4 * i;
      image.data[at] = channels === 2 ? 90 * on + 255 * off : 255 * on;
      image.data[at + 1] = channels === 2 ? 190 * on + 140 * off : 255 * on;
      image.data[at + 2] = channels === 2 ? 255 * on + 70 * off : 255 * on;
      image.data[at + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }
  // Inputs that are no picture: one row an input, one column a time-step, the future left dark.
  function drawRaster() {
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let t = 0; t < steps; t++) {
      for (let i = 0; i < rows; i++) {
        const lit = t < state.step && spike(state.sample, t, i) ? 255 : t < state.step ? 36 : 12;
        image.data.set([lit, lit, lit, 255], 4 * (i * columns + t));
      }
    }
    context.putImageData(image, 0, 0);
  }

  function drawModel({ method, pane, decision, plot }) {
    if (pane.hidden) return;
    const truth = stream.labels[state.sample];
    const p = method.p[state.sample];
    const now = p[state.step - 1];
    const best = now.indexOf(Math.max(...now));
    decision.replaceChildren(
      `t = ${state.step}: `,
      make("b", best === truth ? "right" : "wrong", `${nameOf(best)} ${best === truth ? "✓" : "✗"}`),
      ` with confidence ${(now[best] / 1000).toFixed(2)}`,
    );
    if (!near) return;
    const t = Array.from({ length: state.step }, (_, k) => k + 1);
    const escape = (s) => s.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
    // The truth and the classes that were ever thought of are named; the rest are thin grey lines.
    const final = p[steps - 1];
    const ranked = final.map((value, k) => k).sort((a, b) => final[b] - final[a]);
    const thought = ranked.filter((k) => k !== truth && p.some((row) => row[k] >= 200));
    const named = [truth, ...thought].slice(0, 4);
    const order = [...final.keys()].filter((k) => !named.includes(k)).concat([...named].reverse());
    const data = order.map((k) => {
      const place = named.indexOf(k);
      const color = k === truth ? Theme.colour("@own") : place > 0 ? Theme.colour(`@c${[0, 0, 2, 3][place]}`) : Theme.colour("@muted:0.45");
      return { type: "scatter", mode: "lines", x: t, y: t.map((s) => p[s - 1][k] / 1000), name: escape(nameOf(k)),
        line: { color, width: k === truth ? 3.5 : place > 0 ? 1.8 : 1, dash: place > 1 ? "dot" : "solid" },
        showlegend: place >= 0, legendrank: place < 0 ? 1000 : place };
    });
    data.filter((line) => !line.showlegend).slice(0, 1).forEach((line) => {
      data.push({ ...line, x: [null], y: [null], name: named.length > 1 ? "all others" : "all other classes", showlegend: true, hoverinfo: "skip" });
    });
    const layout = withLook({ xaxis: { range: [1, Math.max(2, steps)], title: { text: "t" } },
      yaxis: { range: [0, 1.02], title: { text: "probability" } }, showlegend: true }, data, plot.clientWidth);
    layout.margin = { ...layout.margin, r: 8, t: 6 };
    plot.style.height = `${layout.margin.b + 150}px`; // a long legend makes room for itself, not at the curves' cost
    Plotly.react(plot, data, layout, { ...PLOT_CONFIG, displayModeBar: false });
  }

  let near = false;
  function draw() {
    input.value = state.step;
    output.textContent = String(state.step);
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === state.sample)));
    canvas.setAttribute("aria-label", `Input spikes of sample ${state.sample + 1} at t = ${state.step}`);
    if (picture) drawPicture(); else drawRaster();
    panes.forEach(drawModel);
  }
  connectSlider(slider, (step) => { state.step = step; draw(); }, 90);
  new IntersectionObserver((entries) => {
    if (!near && entries.some((each) => each.isIntersecting)) { near = true; draw(); }
  }, { rootMargin: "300px" }).observe(box);
  return { draw };
}
