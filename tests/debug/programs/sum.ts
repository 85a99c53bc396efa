interface Point { x: number; y: number[] }
function add(a: number, b: number): number {
  const c: number = a + b;
  return c;
}
const point: Point = { x: 1, y: [2, 3] };
const total: number = add(point.x, point.y[0]);
console.log("sum", total);
process.exit(3);
