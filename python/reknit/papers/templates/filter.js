"use strict";
const form = document.getElementById("filter");
const rows = [...document.querySelectorAll("#claims tbody tr")];
function filter() {
  const wanted = Object.fromEntries(new FormData(form));
  const text = wanted.text.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const fits = ["outcome", "paper", "confidence"].every((key) => !wanted[key] || row.dataset[key] === wanted[key]);
    row.hidden = !(fits && row.textContent.toLowerCase().includes(text));
    shown += !row.hidden;
  }
  form.querySelector("output").textContent = `${shown} of ${rows.length}`;
}
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();
