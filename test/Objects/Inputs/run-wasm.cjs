// Runs `check` of a WebAssembly file, prints what it emits and exits with what it returns.
const fs = require("fs");
const file = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const env = { emit: (start, size) => fs.writeSync(1, new Uint8Array(instance.exports.memory.buffer, start, size)) };
const instance = new WebAssembly.Instance(file, { env });
process.exitCode = instance.exports.check();
