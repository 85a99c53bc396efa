function add(a, b) {
  const c = a + b;
  return c;
}
const point = { x: 1, y: [2, 3] };
const total = add(point.x, point.y[0]);
console.log("sum", total);
process.exit(3);
