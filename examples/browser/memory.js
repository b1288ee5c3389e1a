// The two memories of memory.wasm, and what is drawn of them. Knows no document: it runs under Node.js too.

export const SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz";
export const KEYS = 24, VALUES = SYMBOLS.length, RULES = ["add", "delta"];

// A key is a unit vector of random signs, the same in every browser: xorshift from the letter's number.
export function keyOf(letter) {
  let seed = (SYMBOLS.indexOf(letter) + 1) * 2654435761 >>> 0;
  return Float32Array.from({ length: KEYS }, () => {
    seed ^= seed << 13, seed ^= seed >>> 17, seed ^= seed << 5;
    return (seed & 64 ? 1 : -1) / Math.sqrt(KEYS);
  });
}

// "a3 b7 a?" in tokens: the key a gets the value 3, b gets 7, and a is read.
export function parse(text) {
  return text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const known = (c) => c !== undefined && SYMBOLS.includes(c);
    if (word.length !== 2 || !known(word[0]) || !(known(word[1]) || word[1] === "?"))
      throw new Error(`expected pairs such as a3, or questions such as a?, but got ${word}`);
    return { key: word[0], value: word[1] === "?" ? null : word[1] };
  });
}

export class Memory {
  // The bytes of memory.wasm, or a response that has them.
  static async load(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes);
    return new Memory(instance.exports);
  }

  constructor(exports) {
    const view = (start, count) => new Float32Array(exports.memory.buffer, start, count);
    this.step = exports.step;
    this.key = view(exports.key(), KEYS);
    this.value = view(exports.value(), VALUES);
    this.beta = view(exports.beta(), 1);
    this.states = RULES.map((_, rule) => view(exports.state(rule), KEYS * VALUES));
    this.outputs = RULES.map((_, rule) => view(exports.output(rule), VALUES));
  }

  clear() {
    this.states.forEach((state) => state.fill(0));
  }

  // Takes a token; returns the two values that each rule reads most of.
  take({ key, value }) {
    this.key.set(keyOf(key));
    this.value.fill(0);
    this.beta[0] = value === null ? 0 : 1;
    if (value !== null) this.value[SYMBOLS.indexOf(value)] = 1;
    if (this.step()) throw new Error("expected the shapes of memory.mlir");
    return this.outputs.map((output) => {
      const found = [...output].map((weight, i) => ({ symbol: SYMBOLS[i], weight }));
      return found.sort((a, b) => b.weight - a.weight).slice(0, 2);
    });
  }
}

// A state as pixels, four bytes each: white is 0, blue positive, orange negative; full at the limit.
export function pixels(state, limit) {
  const bytes = new Uint8ClampedArray(4 * state.length);
  state.forEach((number, i) => {
    const part = Math.min(1, Math.abs(number) / limit);
    const full = number > 0 ? [20, 80, 200] : [230, 110, 20];
    full.forEach((channel, c) => (bytes[4 * i + c] = Math.round(255 + part * (channel - 255))));
    bytes[4 * i + 3] = 255;
  });
  return bytes;
}
