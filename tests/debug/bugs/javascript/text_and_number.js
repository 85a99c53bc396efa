// A number that stays a text, so that plus glues instead of adding.
const assert = require("node:assert");

function parse(line) {
  const parts = line.split(":");
  return parts[1]; // FAULT
}

function sumUp(lines) {
  let sum = 0;
  for (const line of lines) {
    sum = sum + parse(line);
  }
  return sum;
}

assert.strictEqual(sumUp(["apples:3", "pears:4"]), 7);
