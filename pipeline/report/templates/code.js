// Colours Python in <pre> elements and makes the copy buttons work. Text is only ever added as text nodes.
const KEYWORDS = "and as assert async await break class continue def del elif else except finally for from global if import in is lambda not or pass raise return try while with yield True False None";
const BUILTINS = "abs all any bool dict enumerate float getattr int isinstance len list max min print property range reversed set sorted staticmethod str sum super tuple type zip self";
const PARTS = [
  ["c", "#[^\\n]*"],
  ["s", "\\b[rbfuRBFU]{0,2}(?:\"\"\"[^]*?\"\"\"|'''[^]*?''')|(?:\"\"\"[^]*?\"\"\"|'''[^]*?''')"],
  ["s", "(?:\\b[rbfuRBFU]{1,2})?(?:\"(?:\\\\.|[^\"\\\\\\n])*\"|'(?:\\\\.|[^'\\\\\\n])*')"],
  ["d", "@[\\w.]+"],
  ["f", "(?<=\\b(?:def|class)\\s+)\\w+"],
  ["m", "\\b\\d[\\w.]*(?:(?<=[eE])[+-]\\d+)?"],
  ["k", `\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b`],
  ["b", `(?<!\\.)\\b(?:${BUILTINS.replaceAll(" ", "|")})\\b`],
];
const TOKENS = new RegExp(PARTS.map(([, pattern]) => `(${pattern})`).join("|"), "g");

function colour(pre) {
  const text = pre.textContent;
  let end = 0;
  pre.textContent = "";
  for (const match of text.matchAll(TOKENS)) {
    pre.append(text.slice(end, match.index));
    const token = document.createElement("b");
    token.className = PARTS[match.slice(1).findIndex((group) => group !== undefined)][0];
    token.textContent = match[0];
    pre.append(token);
    end = match.index + match[0].length;
  }
  pre.append(text.slice(end));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // without permission, for example in a frame
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const link = button.dataset.link;
  const source = button.closest("[data-copied]").querySelector("pre, code");
  await copy(link ? location.href.split("#")[0] + link : source.textContent);
  button.textContent = "copied";
  setTimeout(() => { button.textContent = button.dataset.label; }, 1200);
});
document.querySelectorAll("pre").forEach(colour);
