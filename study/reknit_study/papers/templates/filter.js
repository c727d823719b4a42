"use strict";
const form = document.getElementById("filter");
const rows = [...document.querySelectorAll("#claims tbody tr")];
function filter() {
  const wanted = Object.fromEntries(new FormData(form));
  const text = wanted.text.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = ["outcome", "number", "weak", "paper", "confidence"].every((key) => !wanted[key] || row.dataset[key] === wanted[key]);
    row.hidden = !(fits && row.textContent.toLowerCase().includes(text));
    shown += !row.hidden;
  }
  form.querySelector("output").textContent = `${shown} of ${rows.length}`;
}
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();

async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("pictures").textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const pictures = await new Response(stream).json();
  for (const image of document.querySelectorAll("img[data-picture]")) {
    image.src = "data:image/svg+xml," + encodeURIComponent(pictures[image.dataset.picture]);
  }
  for (const table of document.querySelectorAll("table[data-values]")) {
    pictures[table.dataset.values].split("\n").forEach((line, row) => fill(table.insertRow(), line.split("\t"), row));
  }
  for (const details of document.querySelectorAll("details[data-condition]")) {
    for (const line of pictures[details.dataset.condition].split("\n")) {
      const [name, condition] = line.split("\t");
      const part = document.createElement("div");
      const code = document.createElement("code");
      code.textContent = condition;
      part.append(name, code);
      details.append(part);
    }
  }
}
function fill(into, cells, row) {
  cells.forEach((text, column) => {
    const cell = document.createElement(column < 2 ? "th" : "td");
    if (column < 2) cell.scope = row ? "row" : "col";
    cell.textContent = text;
    into.append(cell);
  });
}
unpack();
document.querySelectorAll('a[href^="#name-"]').forEach((link) =>
  link.addEventListener("click", () => { document.querySelector(".names-of").open = true; }));
