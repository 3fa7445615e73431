const box = document.getElementById("find");
const selects = [...document.querySelectorAll(".tools select")];
const pairs = [...document.querySelectorAll(".pair")];
const shown = document.getElementById("shown");

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const pair of pairs) {
    const fits = words.every((word) => pair.dataset.find.includes(word))
      && selects.every((select) => !select.value || pair.dataset[select.name] === select.value);
    pair.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${pairs.length}`;
}

box.addEventListener("input", filter);
selects.forEach((select) => select.addEventListener("change", filter));
filter();
