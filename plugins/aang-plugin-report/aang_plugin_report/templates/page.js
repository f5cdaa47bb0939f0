"use strict";
const root = document.documentElement;
const figures = JSON.parse(document.getElementById("figures").textContent);

function colours() {
  const style = getComputedStyle(root);
  const read = (name) => style.getPropertyValue(name).trim();
  return { ink: read("--ink"), line: read("--line"), soft: read("--soft"), panel: read("--panel") };
}

// In either theme zero has nearly the colour of the page, so that what stands out is not zero.
function scaleOf(trace) {
  const { panel } = colours();
  const [low, high] = ["#d6604d", "#2f7fc1"];
  return trace.zmid === undefined ? [[0, panel], [1, high]] : [[0, low], [0.5, panel], [1, high]];
}

// Space for the legend, whose rows would otherwise be taken from the plot.
function heightOf(place, data, layout) {
  const named = data.filter((trace) => trace.name !== undefined);
  const longest = Math.max(0, ...named.map((trace) => trace.name.length));
  const columns = Math.max(1, Math.floor((place.clientWidth - 80) / (7 * longest + 60)));
  return layout.height + 19 * Math.max(0, Math.ceil(named.length / columns) - 1);
}

function layoutOf(layout) {
  const { ink, line, soft, panel } = colours();
  const shapes = (layout.shapes ?? []).map((shape) => ({ ...shape, line: { ...shape.line, color: soft } }));
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line };
  return {
    ...layout,
    shapes,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12 },
    hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: ink } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
  };
}

function draw() {
  // On a phone the bar of buttons would lie on the legend.
  const bar = window.innerWidth > 700 ? "hover" : false;
  for (const place of document.querySelectorAll("[data-chart]")) {
    const { data, layout } = figures[place.dataset.chart];
    const height = heightOf(place, data, layout);
    place.style.height = `${height}px`;
    const coloured = data.map((trace) => (trace.type === "heatmap" ? { ...trace, colorscale: scaleOf(trace) } : trace));
    Plotly.react(place, coloured, layoutOf({ ...layout, height }), { responsive: true, displaylogo: false, displayModeBar: bar });
  }
  hint();
}

// Say where a part of a chart or of a table is out of sight.
function hint() {
  for (const wide of document.querySelectorAll(".wide")) {
    wide.parentElement.classList.toggle("cut", wide.scrollWidth > wide.clientWidth + 1);
  }
}

function setTheme(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(dark));
  button.textContent = dark ? "Light theme" : "Dark theme";
  if (window.Plotly) draw();
}

function valueOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
}

function sortBy(header) {
  const table = header.closest("table");
  const column = header.cellIndex;
  const falling = header.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [left, right] = [valueOf(a, column), valueOf(b, column)];
    const numbers = typeof left === "number" && typeof right === "number";
    const order = numbers ? left - right : String(left).localeCompare(String(right));
    return falling ? -order : order;
  });
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", falling ? "descending" : "ascending");
  table.tBodies[0].append(...rows);
}

async function loadPlotly() {
  const packed = atob(document.getElementById("plotly").textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

for (const header of document.querySelectorAll("th")) {
  header.querySelector("button").addEventListener("click", () => sortBy(header));
}
document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme !== "dark"));
window.addEventListener("resize", hint);
setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
loadPlotly().then(draw).then(() => { root.dataset.drawn = "yes"; });
