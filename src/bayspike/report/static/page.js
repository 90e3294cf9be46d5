// The controls of the page: sliders over t, the predictor menu, tables that sort.
function connectSlider(box, onStep, milliseconds) {
  const input = box.querySelector("input");
  const output = box.querySelector("output");
  const play = box.querySelector(".play");
  let timer = null;
  let asked = false;
  let wanted = null; // kept apart: a drawing that was asked for before may set the slider back meanwhile
  function moved() {
    wanted = Number(input.value);
    output.textContent = input.value;
    if (asked) return; // at most one drawing a frame, however fast the slider moves
    asked = true;
    requestAnimationFrame(() => { asked = false; onStep(wanted); });
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  }
  function start() {
    if (input.value === input.max) { input.value = input.min; moved(); }
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      if (input.value === input.max) { stop(); return; }
      input.value = Number(input.value) + 1;
      moved();
    }, milliseconds);
  }
  play.addEventListener("click", () => (timer === null ? start() : stop()));
  input.addEventListener("input", () => { stop(); moved(); });
  return { stop, moved };
}

for (const box of document.querySelectorAll("section > .slider")) {
  connectSlider(box, (step) => Plots.setStep(box.closest("section"), step), 120);
}

// Tables wider than the screen say so, and can be scrolled by keys.
const watchWidth = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const more = target.scrollWidth > target.clientWidth + 1;
    target.parentElement.classList.toggle("more", more);
    if (more) target.tabIndex = 0; else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll(".scroll")) watchWidth.observe(box);

const view = document.getElementById("view");
function showView() {
  const chosen = view ? view.value : "headline";
  for (const card of document.querySelectorAll("[data-views]")) card.hidden = !JSON.parse(card.dataset.views).includes(chosen);
  Plots.refresh();
  Streams.forEach((stream) => stream.draw());
}
const Streams = [...document.querySelectorAll("[data-stream]")].map((box) => buildStream(box, Data.streams[box.dataset.stream]));
if (view) view.addEventListener("change", showView);
Theme.onChange(() => Streams.forEach((stream) => stream.draw()));
showView();

for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((heading, column) => {
    heading.tabIndex = 0;
    const sort = () => {
      const up = heading.getAttribute("aria-sort") === "descending";
      table.querySelectorAll("thead th").forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent;
      };
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // what has no number comes last
        const sign = typeof x === "number" ? x - y : x.localeCompare(y);
        return up ? sign : -sign;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(order));
    };
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  });
}
