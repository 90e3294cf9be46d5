// Drawing on canvases: grey pictures, pictures of synapses, lines over time. All colours come from the theme.
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

// Rows and columns of an example: (h, w), (channels, h, w) side by side, or a long row folded into a square.
export function layoutOf(shape) {
  if (shape.length === 2) return { channels: 1, rows: shape[0], columns: shape[1] };
  if (shape.length === 3) return { channels: shape[0], rows: shape[1], columns: shape[2] };
  const count = shape.reduce((a, b) => a * b, 1);
  const columns = Math.ceil(Math.sqrt(count));
  return { channels: 1, rows: Math.ceil(count / columns), columns };
}

function sized(canvas, columns, rows) {
  if (canvas.width !== columns || canvas.height !== rows) { canvas.width = columns; canvas.height = rows; }
  return canvas.getContext("2d");
}

export function grey(canvas, bytes, shape) {
  const { rows, columns } = layoutOf(shape);
  const context = sized(canvas, columns, rows);
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) image.data.set([bytes[i] ?? 0, bytes[i] ?? 0, bytes[i] ?? 0, 255], 4 * i);
  context.putImageData(image, 0, 0);
}

// A spike's light fades from step to step. Two channels (a camera's off and on) are orange and blue.
export function faded(canvas, light, shape) {
  const { channels, rows, columns } = layoutOf(shape);
  const pixels = rows * columns;
  const context = sized(canvas, columns, rows);
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < pixels; i++) {
    const off = channels === 2 ? light[i] : 0;
    const on = channels === 2 ? light[pixels + i] : light[i] ?? 0;
    const at = 4 * i;
    image.data[at] = channels === 2 ? 90 * on + 255 * off : 255 * on;
    image.data[at + 1] = channels === 2 ? 190 * on + 140 * off : 255 * on;
    image.data[at + 2] = channels === 2 ? 255 * on + 70 * off : 255 * on;
    image.data[at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// Signed values: blue below, orange above, the page's colour at 0. Others: the least in the page's colour, the most in
// ink. Returns the two ends of the scale.
export function synapses(canvas, values, shape, signed) {
  const { channels, rows, columns } = layoutOf(shape);
  const highest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  const lowest = signed ? 0 : values.reduce((a, b) => Math.min(a, b), highest);
  const context = sized(canvas, channels * columns, rows);
  const image = context.createImageData(channels * columns, rows);
  const ground = Theme.isDark() ? [29, 33, 37] : [255, 255, 255];
  const ends = signed ? [[213, 94, 0], [0, 114, 178]] : [Theme.isDark() ? [230, 233, 236] : [28, 32, 36]];
  for (let c = 0; c < channels; c++) {
    for (let i = 0; i < rows * columns; i++) {
      const value = values[c * rows * columns + i] ?? lowest;
      const share = (Math.abs(value) - lowest) / Math.max(1e-9, highest - lowest);
      const end = ends[signed && value < 0 ? 1 : 0];
      const at = 4 * (Math.floor(i / columns) * channels * columns + c * columns + (i % columns));
      for (let k = 0; k < 3; k++) image.data[at + k] = ground[k] + share * (end[k] - ground[k]);
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return signed ? [-highest, highest] : [lowest, highest];
}

// One column a step, up to 400 rows; neighbouring inputs share a row where there are more.
export class Raster {
  constructor(canvas) { this.canvas = canvas; this.reset(1, 1); }
  reset(steps, inputs) {
    this.rows = Math.min(inputs, 400);
    this.inputs = inputs;
    this.context = sized(this.canvas, Math.max(1, steps), this.rows);
    this.context.fillStyle = "#000";
    this.context.fillRect(0, 0, this.canvas.width, this.rows);
  }
  add(step, spike) {
    const image = this.context.createImageData(1, this.rows);
    for (let k = 0; k < this.rows; k++) image.data.set([34, 38, 43, 255], 4 * k);
    for (let i = 0; i < this.inputs; i++) {
      if (spike(i)) image.data.set([255, 255, 255, 255], 4 * Math.floor((i * this.rows) / this.inputs));
    }
    this.context.putImageData(image, step - 1, 0);
  }
}

// Lines in a frame: series of {values, colour, width, dash, dots}, from 0 to 1; marks are {at, text}.
export function lines(canvas, series, count, { marks = [], ticks = [] } = {}) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 300, height = canvas.clientHeight || 200;
  const context = sized(canvas, Math.round(width * scale), Math.round(height * scale));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const left = 42, right = width - 6, top = 8, bottom = height - 20;
  const x = (k) => (count > 1 ? left + ((right - left) * k) / (count - 1) : (left + right) / 2);
  const y = (p) => bottom - (bottom - top) * p;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = Theme.colour("@muted");
  context.strokeStyle = Theme.colour("@grid");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const p of [0, 0.5, 1]) {
    context.beginPath(); context.moveTo(left, y(p)); context.lineTo(right, y(p)); context.stroke();
    context.fillText(`${100 * p} %`, left - 4, y(p) + 4);
  }
  context.textAlign = "center";
  for (const { at, text } of ticks) context.fillText(text, x(at), height - 5);
  for (const { at, text } of marks) {
    context.strokeStyle = Theme.colour("@ink:0.5");
    context.setLineDash([3, 3]);
    context.beginPath(); context.moveTo(x(at), top); context.lineTo(x(at), bottom); context.stroke();
    context.setLineDash([]);
    context.fillStyle = Theme.colour("@ink");
    context.textAlign = x(at) > (left + right) / 2 ? "right" : "left";
    context.fillText(text, x(at) + (context.textAlign === "left" ? 4 : -4), top + 9);
  }
  for (const { values, colour, width: thick = 2, dash = [], dots = false } of series) {
    context.strokeStyle = colour; context.fillStyle = colour; context.lineWidth = thick; context.setLineDash(dash);
    context.beginPath();
    let down = false;
    values.forEach((value, k) => {
      if (value === null || value === undefined) { down = false; return; }
      if (down) context.lineTo(x(k), y(value)); else context.moveTo(x(k), y(value));
      down = true;
    });
    context.stroke();
    context.setLineDash([]);
    if (dots) values.forEach((value, k) => {
      if (value === null || value === undefined) return;
      context.beginPath(); context.arc(x(k), y(value), 3, 0, 7); context.fill();
    });
  }
}
