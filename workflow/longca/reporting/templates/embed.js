// Draw a figure without its title, which stands above it as text; as many panels side by side as there is room for.
// On a dark screen the dark colours are laid over the theme's. No link out, pictures can be saved.
function drawFigure(selector, spec, dark) {
  const config = { ...spec.config };
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    for (const [part, values] of Object.entries(dark)) {
      config[part] = typeof values === "string" ? values : { ...config[part], ...values };
    }
  }
  const { title, ...untitled } = spec;
  const columns = columnsFor(spec, document.querySelector(selector).clientWidth);
  const actions = { export: true, source: false, compiled: false, editor: false };
  return vegaEmbed(selector, { ...untitled, columns, config }, { actions, renderer: "svg" });
}

// The most columns in a frame of `width` pixels that divide the figure's own, so that its rows begin where they did.
function columnsFor(spec, width) {
  const axis = 90, panel = spec.spec.width + 20;
  let columns = spec.columns;
  while (columns > 1 && (spec.columns % columns || axis + columns * panel > width)) columns -= 1;
  return columns;
}
