// Applies a calibrator of two classes that vennforest has written as JSON.
//   node calibrator.js calibrator.json 0.2 0.7
const fs = require("fs");

function read(path) {
  const { format, version, reading } = JSON.parse(fs.readFileSync(path, "utf8"));
  if (format !== "vennforest-calibrator" || version !== 1 || reading === null)
    throw new Error(`${path} must be a calibrator with a table or a sigmoid`);
  return reading;
}

function sigmoid(c, s) {
  if (c.low !== null) {
    s = Math.min(Math.max(s, c.low), c.high);
    s = Math.log(s) - Math.log1p(-s);
  }
  const z = (s / c.unit - c.centre) / c.spread;
  return 1 / (1 + Math.exp(-(c.slope * z + c.intercept)));
}

function apply({ low, high, steps, sigmoid: curve }, s) {
  if (!(s >= low && s <= high)) return { p0: null, p1: null, p: null };
  if (steps === null) return { p0: null, p1: null, p: sigmoid(curve, s) };
  let i = 0;
  for (let j = steps.start.length; j - i > 1; ) {
    const middle = (i + j) >> 1;
    if (steps.start[middle] <= s) i = middle; else j = middle;
  }
  const [p0, p1, p] = [steps.p0, steps.p1, steps.p].map((column) => column && column[i]);
  return { p0, p1, p: p ?? Math.min(Math.max(sigmoid(curve, s), p0), p1) };
}

module.exports = { read, apply };
if (require.main === module)
  for (const score of process.argv.slice(3))
    console.log(JSON.stringify(apply(read(process.argv[2]), Number(score))));
