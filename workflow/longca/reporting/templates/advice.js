// Fill the choices of the question with what was measured, and show the ranking for what is chosen.
function askForAdvice(packed) {
  const rows = unpacked(packed);
  const form = document.getElementById("advice-question");
  const body = document.querySelector("#advice-ranking tbody");
  for (const select of form.elements) {
    for (const value of new Set(rows.map((row) => row[select.name]))) select.add(new Option(value));
    select.closest("label").hidden = select.length < 2;
  }
  form.elements.pass.value = "both";
  const show = () => {
    const asked = [...form.elements].map((select) => [select.name, select.value]);
    const found = rows.filter((row) => asked.every(([name, value]) => String(row[name]) === value));
    body.replaceChildren(...found.map(ranking));
    if (!found.length) body.append(line(["Not measured: choose another length, or another pattern."]));
  };
  form.addEventListener("change", show);
  show();
}

function ranking({ name, ms, tflops, ratio, why }) {
  return line([name, ms, tflops, ratio, why ?? ""]);
}

function line(texts) {
  const row = document.createElement("tr");
  texts.forEach((text, index) => {
    const cell = row.appendChild(document.createElement(index ? "td" : "th"));
    cell.textContent = text;
    if (texts.length === 1) cell.colSpan = 5;
  });
  return row;
}
