// The page around memory.js. `index.html?pause=0` takes all tokens without waiting between them.
import { KEYS, Memory, RULES, VALUES, parse, pixels } from "./memory.js";

const find = (id) => document.getElementById(id);
const pause = Number(new URLSearchParams(location.search).get("pause") ?? 300);
const response = await fetch("memory.wasm");
const memory = await Memory.load(await response.arrayBuffer());

function draw() {
  RULES.forEach((rule, i) => {
    const canvas = find(rule);
    canvas.width = VALUES, canvas.height = KEYS;
    canvas.getContext("2d").putImageData(new ImageData(pixels(memory.states[i], 0.4), VALUES, KEYS), 0, 0);
  });
}

let latest = 0;

async function run() {
  const mine = ++latest;
  find("error").textContent = "";
  RULES.forEach((rule) => (find(`${rule}-answers`).textContent = ""));
  memory.clear();
  let tokens;
  try {
    tokens = parse(find("text").value);
  } catch (error) {
    find("error").textContent = error.message;
    return;
  }
  for (const [count, token] of tokens.entries()) {
    const answers = memory.take(token);
    draw();
    find("status").textContent = `${count + 1} of ${tokens.length} tokens`;
    if (token.value === null)
      RULES.forEach((rule, i) => {
        const [first, second] = answers[i].map(({ symbol, weight }) => [symbol, ` ${weight.toFixed(2)}`]);
        const line = document.createElement("li");
        line.append(`${token.key}? `, Object.assign(document.createElement("b"), { textContent: first[0] }));
        line.append(`${first[1]}, ${second[0]}${second[1]}`);
        find(`${rule}-answers`).append(line);
      });
    if (pause) await new Promise((done) => setTimeout(done, pause));
    if (mine !== latest) return;
  }
  document.body.dataset.done = mine;
}

find("run").onclick = run;
draw();
run();
