const CHUNK = {{ chunk }};
const chunks = {{ packed }}; // the bodies of the rows, CHUNK in each: JSON, deflate, base64
const unpacked = [];
const rows = [...document.querySelectorAll(".pair")];
const box = document.getElementById("find");
const selects = [...document.querySelectorAll(".tools select")];
const shown = document.getElementById("shown");
const more = document.getElementById("more");
const STEP = 10;
let limit = STEP;

function unpack(number) {
  unpacked[number] ??= (async () => {
    const bytes = Uint8Array.from(atob(chunks[number]), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  })();
  return unpacked[number];
}

async function fill(row) {
  if (row.dataset.filled) return;
  row.dataset.filled = "yes";
  const index = rows.indexOf(row);
  const bodies = await unpack(Math.floor(index / CHUNK));
  row.insertAdjacentHTML("beforeend", bodies[index % CHUNK]);
  row.querySelectorAll("pre").forEach(colour);
}

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = rows.filter((row) => words.every((word) => row.dataset.find.includes(word))
    && selects.every((select) => !select.value || row.dataset[select.name] === select.value));
  rows.forEach((row) => { row.hidden = true; });
  fits.slice(0, limit).forEach((row) => { row.hidden = false; });
  const count = Math.min(limit, fits.length);
  shown.textContent = count < fits.length ? `${count} of ${fits.length} shown` : `${fits.length} of ${rows.length}`;
  more.hidden = count === fits.length;
}

async function follow() {
  const row = document.getElementById(location.hash.slice(1));
  if (!row?.classList.contains("pair")) return;
  row.hidden = false;
  row.open = true;
  await fill(row);
  row.scrollIntoView({ behavior: "instant" });
}

function search() {
  limit = STEP;
  filter();
}

rows.forEach((row) => row.addEventListener("toggle", () => row.open && fill(row)));
box.addEventListener("input", search);
selects.forEach((select) => select.addEventListener("change", search));
more.addEventListener("click", () => { limit += 10 * STEP; filter(); });
window.addEventListener("hashchange", follow);
filter();
follow();
