"use strict";
// Light and dark: the system decides until the button is pressed. Plots name colours by token ("@c0", "@ink:0.3").
const Theme = (() => {
  const light = {
    ink: "#1c2024", muted: "#5f6b76", grid: "#e3e7eb", box: "#ffffff", own: "#0072b2", bad: "#d55e00",
    c: ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b07d00", "#2a9ad6", "#444444", "#7a5195"],
    t: ["#0072b2", "#d55e00", "#009e73", "#a64d84", "#c99700", "#2a9ad6", "#444444", "#7a5195"],
  };
  const dark = {
    ink: "#e6e9ec", muted: "#9aa5b0", grid: "#343b42", box: "#1d2125", own: "#56b4e9", bad: "#ff8a4c",
    c: ["#ff8a4c", "#56b4e9", "#2fcf9f", "#e79ac5", "#f0c04a", "#8fd0ff", "#d0d0d0", "#c09be0"],
    t: ["#56b4e9", "#ff8a4c", "#2fcf9f", "#e79ac5", "#f0c04a", "#8fd0ff", "#d0d0d0", "#c09be0"],
  };
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let chosen = null;
  try { chosen = localStorage.getItem("bayspike-theme"); } catch { /* a page opened from a file may have no storage */ }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => listeners.forEach((listener) => listener());
  system.addEventListener("change", tell);
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("bayspike-theme", root.dataset.theme); } catch { /* as above */ }
    tell();
  });

  function colour(token) {
    const found = /^@([a-z]+)(\d*)(?::([\d.]+))?$/.exec(token);
    if (!found) return token;
    const palette = isDark() ? dark : light;
    let value = palette[found[1]];
    if (found[2] !== "") value = value[Number(found[2]) % value.length];
    if (found[3] === undefined) return value;
    const channel = (at) => parseInt(value.slice(at, at + 2), 16);
    return `rgba(${channel(1)},${channel(3)},${channel(5)},${found[3]})`;
  }

  // Only entries that are colours are looked at: a name that happens to begin with "@" stays a name.
  function resolve(value, key = "") {
    if (typeof value === "string") return /color$/.test(key) ? colour(value) : value;
    if (Array.isArray(value)) {
      const objects = value.length > 0 && value.every((each) => each && typeof each === "object" && !Array.isArray(each));
      return objects ? value.map((each) => resolve(each)) : value; // numbers, which are most of the data, stay as they are
    }
    if (value && typeof value === "object") {
      const out = {};
      for (const [name, each] of Object.entries(value)) out[name] = resolve(each, name);
      return out;
    }
    return value;
  }
  return { colour, resolve, isDark, onChange: (listener) => listeners.push(listener) };
})();
