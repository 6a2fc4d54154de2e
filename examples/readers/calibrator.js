// Applies a calibrator that vennforest has written as JSON.
//   node calibrator.js calibrator.json 0.2 0.7          two classes: one score each
//   node calibrator.js calibrator.json 0.2,0.5,0.3      more: the scores of all classes
const fs = require("fs");

function read(path) {
  const { format, version, reading } = JSON.parse(fs.readFileSync(path, "utf8"));
  if (format !== "vennforest-calibrator" || version !== 1 || reading === null)
    throw new Error(`${path} must be a calibrator with formulas`);
  return reading;
}

const operations = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => a / b,
  min: Math.min,
  max: Math.max,
  log: Math.log,
  exp: Math.exp,
  floor: Math.floor,
  "if <=": (a, b, here, above) => (a <= b ? here : above),
};

function row(start, x) {
  let i = 0;
  for (let j = start.length; j - i > 1; ) {
    const middle = (i + j) >> 1;
    if (start[middle] <= x) i = middle; else j = middle;
  }
  return i;
}

function apply({ low, high, sum_within, tables, terms, ...answers }, given) {
  const scores = [given].flat();
  const sum = scores.reduce((a, b) => a + b);
  const taken = scores.every((s) => s >= low && s <= high) &&
    (sum_within === null || Math.abs(sum - 1) <= sum_within);
  const values = [];
  for (const [operation, ...of] of terms)
    if (operation === "score") values.push(scores[of[0]]);
    else if (operation === "number") values.push(of[0]);
    else if (operation === "look up") {
      const table = tables[of[1]];
      values.push(table[of[2]][row(table.start, values[of[0]])]);
    } else values.push(operations[operation](...of.map((i) => values[i])));
  const found = {};
  for (const name of Object.keys(answers)) {
    const of = answers[name].map((i) => (taken ? values[i] : null));
    found[name] = of.length === 1 ? of[0] : of;
  }
  return found;
}

module.exports = { read, apply };
if (require.main === module)
  for (const score of process.argv.slice(3))
    console.log(JSON.stringify(apply(read(process.argv[2]), score.split(",").map(Number))));
