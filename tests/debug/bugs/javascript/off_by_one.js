// A loop that ends one too early.
const assert = require("node:assert");

function total(prices) {
  let sum = 0;
  for (let index = 0; index < prices.length - 1; index++) { // FAULT
    sum += prices[index];
  }
  return sum;
}

assert.strictEqual(total([5, 7, 11]), 23);
