// Draw a figure: on a dark screen the dark colours are laid over the theme's. No link out, pictures can be saved.
function drawFigure(element, spec, dark) {
  const config = { ...spec.config };
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    for (const [part, values] of Object.entries(dark)) {
      config[part] = typeof values === "string" ? values : { ...config[part], ...values };
    }
  }
  const actions = { export: true, source: false, compiled: false, editor: false };
  return vegaEmbed(element, { ...spec, config }, { actions, renderer: "svg" });
}
