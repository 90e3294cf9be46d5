// The pad: strokes of mouse, pen or finger as points in a unit square. The picture is made of them by the server.
export class Pad {
  constructor(canvas, hint, onDrawn, onStroke) {
    this.canvas = canvas;
    this.hint = hint;
    this.strokes = [];
    this.enabled = true;
    let current = null;
    let timer = null;
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const inside = (value) => Math.min(1, Math.max(0, Number(value.toFixed(4))));
      return [inside((event.clientX - box.left) / box.width), inside((event.clientY - box.top) / box.height)];
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.enabled || event.button > 0) return;
      clearTimeout(timer);
      if (this.done) this.clear(); // what was drawn has been asked: this is another drawing
      canvas.setPointerCapture(event.pointerId);
      current = [point(event)];
      this.strokes.push(current);
      this.draw();
      onStroke();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!current) return;
      for (const each of event.getCoalescedEvents?.() ?? [event]) {
        const next = point(each), last = current[current.length - 1];
        if (Math.hypot(next[0] - last[0], next[1] - last[1]) > 0.008) current.push(next);
      }
      this.draw();
    });
    const up = () => {
      if (!current) return;
      current = null;
      // a digit may have several strokes: it is asked about when the pen has rested for a moment
      timer = setTimeout(() => { this.done = true; onDrawn(this.strokes); }, 700);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    this.cancel = () => clearTimeout(timer);
    // whoever does not wait for that: what is on the pad is asked about now
    this.flush = () => { if (this.strokes.length && !this.done) { clearTimeout(timer); current = null; this.done = true; onDrawn(this.strokes); } };
    this.clear();
  }
  clear() {
    this.cancel();
    this.strokes = [];
    this.done = false;
    this.draw();
  }
  draw() {
    const { canvas, strokes } = this;
    const context = canvas.getContext("2d");
    this.hint.hidden = strokes.length > 0;
    context.fillStyle = "#000";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.strokeStyle = "#fff";
    context.fillStyle = "#fff";
    context.lineWidth = canvas.width / 13;
    context.lineCap = context.lineJoin = "round";
    for (const stroke of strokes) {
      context.beginPath();
      stroke.forEach(([x, y], k) => context[k ? "lineTo" : "moveTo"](x * canvas.width, y * canvas.height));
      if (stroke.length === 1) context.lineTo(stroke[0][0] * canvas.width + 0.1, stroke[0][1] * canvas.height);
      context.stroke();
    }
  }
}
