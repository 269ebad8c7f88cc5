// Tables that can be sorted by any column, from its header, and filtered by words. Without JavaScript they are as printed.
addEventListener("DOMContentLoaded", () => document.querySelectorAll("table.sortable").forEach(enhance));

function enhance(table) {
  const rows = [...table.tBodies[0].rows];
  const shown = rows.map((row) => row.textContent.toLowerCase());
  for (const [index, header] of [...table.tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.ariaSort = "none";
    button.addEventListener("click", () => sortBy(table, rows, header, index));
  }
  const field = table.closest(".filtered").querySelector("input");
  const told = table.closest(".filtered").querySelector("output");
  field.closest("label").hidden = false;
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    rows.forEach((row, index) => { row.hidden = !words.every((word) => shown[index].includes(word)); });
    const left = rows.filter((row) => !row.hidden).length;
    told.textContent = left === rows.length ? "" : `${left} of ${rows.length} rows`;
  });
}

// Numbers by size, then words by letter; a click on the sorted column turns it round: words stay last.
function sortBy(table, rows, header, index) {
  const direction = header.ariaSort === "descending" ? "ascending" : header.ariaSort === "ascending" ? "descending" : firstTurn(rows, index);
  for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
  header.ariaSort = direction;
  const sign = direction === "ascending" ? 1 : -1;
  const key = (row) => row.cells[index].textContent.trim();
  const order = (a, b) => {
    const [left, right] = [number(key(a)), number(key(b))];
    if (isNaN(left) !== isNaN(right)) return isNaN(left) ? 1 : -1;
    return sign * (isNaN(left) ? key(a).localeCompare(key(b)) : left - right);
  };
  table.tBodies[0].append(...rows.sort(order));
}

// Of numbers the largest are wanted first, of words the alphabet.
function firstTurn(rows, index) {
  return rows.some((row) => !isNaN(number(row.cells[index].textContent.trim()))) ? "descending" : "ascending";
}

function number(text) {
  return /^-?[0-9.]+(e[-+]?[0-9]+)?( †)?$/.test(text) ? parseFloat(text) : NaN;
}
