// check-memory.mjs FOLDER: the page's memory against the recurrences in float64, and its pixels.
import assert from "node:assert/strict";
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { KEYS, Memory, SYMBOLS, VALUES, keyOf, parse, pixels } = await import(pathToFileURL(`${folder}/memory.mjs`));
const memory = await Memory.load(fs.readFileSync(`${folder}/memory.wasm`));

// One token of both rules, in place; returns what is read.
function reference(states, { key, value }) {
  const k = keyOf(key);
  return states.map((state, rule) => {
    const outputs = [];
    for (let j = 0; j < VALUES; ++j) {
      const column = (i) => i * VALUES + j;
      let write = value === null ? 0 : Number(SYMBOLS[j] === value);
      if (rule === 1 && value !== null)
        for (let i = 0; i < KEYS; ++i) write -= state[column(i)] * k[i];
      let sum = 0;
      for (let i = 0; i < KEYS; ++i) sum += (state[column(i)] += k[i] * write) * k[i];
      outputs.push(sum);
    }
    return outputs;
  });
}

const differ = (a, b) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);
const text = "a3 b7 c1 d9 a? b? a5 a? b2 b? e4 f8 g6 h0 c? d? a? b? z9 00 0? z?";
for (let round = 0; round < 2; ++round) { // The second begins with empty states again.
  memory.clear();
  const states = [0, 1].map(() => new Float64Array(KEYS * VALUES));
  for (const token of parse(text)) {
    const answers = memory.take(token), wanted = reference(states, token);
    for (const rule of [0, 1]) {
      assert(differ(memory.states[rule], states[rule]) < 1e-5, `state ${rule} at ${token.key}`);
      assert(differ(memory.outputs[rule], wanted[rule]) < 1e-5, `output ${rule} at ${token.key}`);
      assert(Math.abs(answers[rule][0].weight - Math.max(...wanted[rule])) < 1e-5);
    }
  }
}

// A pair that is written again: one rule has the new value, the other has both.
memory.clear();
const answers = parse("a3 a5 a?").map((token) => memory.take(token)).at(-1);
assert.equal(answers[1][0].symbol, "5");
assert.deepEqual(answers[0].map(({ symbol }) => symbol).sort(), ["3", "5"]);
assert(Math.abs(memory.outputs[1][3]) < 1e-5 && Math.abs(memory.outputs[1][5] - 1) < 1e-5);
assert(Math.abs(memory.outputs[0][3] - 1) < 1e-5 && Math.abs(memory.outputs[0][5] - 1) < 1e-5);

for (const letter of SYMBOLS) {
  const square = keyOf(letter).reduce((sum, x) => sum + x * x, 0);
  assert(Math.abs(square - 1) < 1e-6);
}
assert.equal(new Set([...SYMBOLS].map((letter) => keyOf(letter).join())).size, SYMBOLS.length);
for (const word of ["a", "a33", "?3", "a!", "ä1"]) assert.throws(() => parse(`b1 ${word}`), new RegExp(`but got ${word.replace("?", "\\?")}$`));
assert.deepEqual([...pixels(Float32Array.of(0, 1, -1, 0.5, 9), 1)],
  [255, 255, 255, 255, 20, 80, 200, 255, 230, 110, 20, 255, 138, 168, 228, 255, 20, 80, 200, 255]);
console.log("agrees");
