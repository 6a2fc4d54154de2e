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

// Of the numbers of all classes of a row.
const ofClasses = {
  sum: (x) => x.reduce((a, b) => a + b),
  largest: (x) => Math.max(...x),
  smallest: (x) => Math.min(...x),
  product: (x, matrix) => matrix[0].map((_, j) => x.reduce((a, y, i) => a + y * matrix[i][j], 0)),
};

// An operation on numbers, and on each of those of all classes.
function each(operation, values) {
  const all = values.find(Array.isArray);
  if (all === undefined) return operation(...values);
  return all.map((_, j) => operation(...values.map((x) => (Array.isArray(x) ? x[j] : x))));
}

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
  const taken = scores.every((s) => (low === null || s >= low) && s <= high) &&
    (scores.length === 1 || Math.max(...scores) > -Infinity) &&
    (sum_within === null || Math.abs(sum - 1) <= sum_within);
  const values = [];
  for (const [operation, ...of] of terms)
    if (operation === "scores") values.push(scores.length === 1 ? scores[0] : scores);
    else if (operation === "number") values.push(of[0]);
    else if (operation === "of class") values.push(values[of[0]][of[1]]);
    else if (operation === "look up") {
      const entry = (x, t) => tables[t][of[2]][row(tables[t].start, x)];
      values.push(each(entry, [values[of[0]], of[1]]));
    } else {
      const given = of.map((i) => values[i]), reduce = ofClasses[operation];
      values.push(reduce ? reduce(...given) : each(operations[operation], given));
    }
  const found = {};
  for (const name of Object.keys(answers)) {
    const answer = values[answers[name]];
    found[name] = taken ? answer : each(() => null, [answer]);
  }
  return found;
}

module.exports = { read, apply };
if (require.main === module)
  for (const score of process.argv.slice(3))
    console.log(JSON.stringify(apply(read(process.argv[2]), score.split(",").map(Number))));
