// Draw a figure when the reader comes near it, and again when the screen turns dark or light.
function drawFigure(selector, spec, dark) {
  const place = document.querySelector(selector);
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const rows = Object.entries(spec.datasets).map(([name, packed]) => [name, unpacked(packed)]);
  const whole = { ...spec, datasets: Object.fromEntries(rows) };
  const menus = document.createElement("div");
  menus.className = "menus";
  place.before(menus);
  let shown;
  const draw = () => embed(place, menus, asChosen(darkness.matches ? onDark(whole, dark) : whole, shown))
    .then(({ view }) => { shown = view; }).catch(console.error);
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    draw();
    darkness.addEventListener("change", draw);
  }, { rootMargin: "1000px" }).observe(place);
}

// A figure drawn again keeps what was chosen from its menus.
function asChosen(spec, view) {
  if (!view || !spec.params) return spec;
  const params = spec.params.map((param) => param.bind?.input ? { ...param, value: view.signal(param.name) } : param);
  return { ...spec, params };
}

// Without its title, which stands above it as text; its menus above it, out of what scrolls; as many panels side by
// side as there is room for. No link out, pictures can be saved.
function embed(place, menus, spec) {
  const config = { ...spec.config };
  config.legend = { columns: Math.max(2, Math.floor(place.clientWidth / 130)), ...config.legend };
  const { title, ...untitled } = spec;
  const columns = columnsFor(spec, place.clientWidth);
  const actions = { export: true, source: false, compiled: false, editor: false };
  menus.replaceChildren();
  return vegaEmbed(place, { ...untitled, columns, config }, { actions, bind: menus, renderer: "svg" });
}

// The figure for a dark screen: the dark theme laid over its own, and dark colours of its scales made lighter.
function onDark(spec, dark) {
  const config = { ...spec.config };
  for (const [part, values] of Object.entries(dark)) {
    config[part] = typeof values === "string" ? values : { ...config[part], ...values };
  }
  const { datasets, ...drawn } = spec;
  const lighter = JSON.parse(JSON.stringify(drawn), (key, value) =>
    key === "range" && Array.isArray(value) ? value.map((item) => lightened(item)) : value);
  return { ...lighter, datasets, config };
}

function lightened(colour) {
  if (!/^#[0-9a-f]{6}$/i.test(colour)) return colour;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  if (0.3 * red + 0.59 * green + 0.11 * blue > 110) return colour;
  return `rgb(${[red, green, blue].map((part) => Math.round(part + (255 - part) * 0.45)).join(", ")})`;
}

// The most columns in a frame of `width` pixels that divide the figure's own, so that its rows begin where they did.
function columnsFor(spec, width) {
  if (!spec.columns) return undefined;
  const axis = 90, panel = spec.spec.width + 20;
  let columns = spec.columns;
  while (columns > 1 && (spec.columns % columns || axis + columns * panel > width)) columns -= 1;
  return columns;
}

// Rows out of columns: a text column is its different texts, and for each row which of them.
function unpacked({ length, columns }) {
  const rows = Array.from({ length }, () => ({}));
  for (const [name, { words, values }] of Object.entries(columns)) {
    values.forEach((value, index) => {
      if (value !== null) rows[index][name] = words ? words[value] : value;
    });
  }
  return rows;
}
