const specs = JSON.parse(document.getElementById("specs").textContent);
const menus = [...document.querySelectorAll("select[data-signal]")];
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const views = {};

function config() {
  const [ink, soft, line] = dark.matches ? ["#e8eaee", "#9aa2af", "#31363f"] : ["#1d2129", "#5c6370", "#e2e5ea"];
  const text = { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, labelLimit: 110 };
  return { background: "transparent", font: "system-ui, sans-serif", view: { stroke: line },
           axis: text, legend: { labelColor: soft, titleColor: soft, orient: "bottom", columns: 5, titleOrient: "top" }, title: { color: ink, subtitleColor: soft, fontSize: 14, anchor: "start" } };
}

// A figure with what is chosen, and of its rows those that begin with it: a figure of many models then holds one.
function narrowed(spec) {
  const datasets = {};
  for (const [name, text] of Object.entries(spec.datasets)) {
    const [header, ...rows] = text.split("\n");
    const menu = menus.find((menu) => header.startsWith(menu.dataset.signal.replace("chosen_", "") + ","));
    const starts = menu && [menu.value + ",", '"' + menu.value + '",', ","];
    datasets[name] = menu ? [header, ...rows.filter((row) => starts.some((start) => row.startsWith(start)))].join("\n") : text;
  }
  return { ...spec, datasets, ...(spec.params ? { params: spec.params.map(chosen) } : {}) };
}

// A choice is made before a figure is laid out: its axes leave the room that these numbers need.
function chosen(param) {
  const menu = menus.find((menu) => menu.dataset.signal === param.name);
  return menu ? { ...param, value: menu.value } : param;
}

// Whether nothing of what is chosen is in a figure.
function empty(spec) {
  return Object.values(spec.datasets).every((text) => text.trim().split("\n").length < 2);
}

async function draw() {
  for (const [name, spec] of Object.entries(specs)) {
    if (views[name]) views[name].finalize();
    delete views[name];
    const at = document.querySelector("[data-chart='" + name + "']"), shown = narrowed(spec);
    at.closest("figure").hidden = empty(shown);
    if (empty(shown)) continue;
    views[name] = await window.vegaEmbed(at, shown, { config: config(), renderer: "svg", logLevel: 1, actions: { export: true, source: false, compiled: false, editor: false } });
  }
  document.body.dataset.drawn = "yes";
}

for (const menu of menus) menu.addEventListener("change", draw);
dark.addEventListener("change", draw);
draw();
