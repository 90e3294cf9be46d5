// Plots are drawn when they come near the screen, and drawn again when the theme or their time-step changes.
const Data = JSON.parse(document.getElementById("data").textContent);
const touch = window.matchMedia("(pointer: coarse)").matches;
const PLOT_CONFIG = { responsive: true, displaylogo: false, displayModeBar: !touch,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

// Room below the plot for as many rows as the legend's columns need; plotly's own guess lets tall plots drift apart.
function legendRows(names, width) {
  const widest = Math.max(...names.map((name) => name.length)) * 6.3 + 48;
  return Math.ceil(names.length / Math.max(1, Math.floor((width - 30) / widest)));
}

function withLook(layout, data, width) {
  const named = layout.showlegend ? data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name || "") : [];
  const below = named.length ? 18 * legendRows(named, width) + 6 : 0;
  const axis = { gridcolor: Theme.colour("@grid"), zerolinecolor: Theme.colour("@grid"), linecolor: Theme.colour("@grid"),
    automargin: true, fixedrange: touch };
  const out = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 52, r: 14, t: 14, b: 44 + below },
    font: { color: Theme.colour("@ink"), size: 12, family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif" },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: Theme.colour("@muted:0.6"), activecolor: Theme.colour("@ink") },
    hoverlabel: { bgcolor: Theme.colour("@box"), bordercolor: Theme.colour("@grid"), font: { color: Theme.colour("@ink") } },
    dragmode: touch ? false : "zoom", ...layout,
  };
  for (const key of Object.keys(out)) {
    if (/^[xy]axis/.test(key)) {
      const title = { standoff: 8, ...out[key].title };
      out[key] = { ...axis, ...out[key], title };
    }
  }
  for (const key of ["xaxis", "yaxis"]) out[key] = out[key] || axis;
  return out;
}

const Plots = (() => {
  const state = new Map(); // id -> {spec, step, drawn}
  for (const [id, spec] of Object.entries(Data.plots)) state.set(id, { spec, step: null, drawn: false });

  function atStep(spec, step) {
    if (!spec.steps || step === null) return spec.data;
    const data = spec.data.map((trace) => ({ ...trace }));
    for (const [index, changes] of Object.entries(spec.steps.traces)) {
      for (const [key, values] of Object.entries(changes)) data[index][key] = values[Math.min(step, values.length) - 1];
    }
    return data;
  }

  function note(id) {
    const { spec, step } = state.get(id);
    if (!spec.steps || !spec.steps.notes) return;
    const notes = spec.steps.notes;
    const place = document.getElementById(id).closest("figure").querySelector(".note");
    place.textContent = notes[Math.min(step === null ? notes.length : step, notes.length) - 1];
  }

  function draw(id) {
    const entry = state.get(id);
    const element = document.getElementById(id);
    if (!element || element.offsetParent === null) return; // hidden: drawn when shown
    entry.drawn = true;
    const data = Theme.resolve(atStep(entry.spec, entry.step));
    Plotly.react(element, data, withLook(Theme.resolve(entry.spec.layout), data, element.clientWidth), PLOT_CONFIG);
  }

  const near = new IntersectionObserver((entries) => {
    for (const each of entries) if (each.isIntersecting && !state.get(each.target.id).drawn) draw(each.target.id);
  }, { rootMargin: "400px" });
  for (const id of state.keys()) { near.observe(document.getElementById(id)); note(id); }

  Theme.onChange(() => { for (const [id, entry] of state) if (entry.drawn) draw(id); });
  window.addEventListener("beforeprint", () => { for (const id of state.keys()) draw(id); });

  function setStep(section, step) {
    for (const element of section.querySelectorAll(".plot")) {
      const entry = state.get(element.id);
      if (!entry || !entry.spec.steps) continue;
      entry.step = step;
      note(element.id);
      if (entry.drawn) draw(element.id);
    }
  }
  function refresh() { for (const [id, entry] of state) if (entry.drawn) draw(id); }
  return { setStep, refresh };
})();
