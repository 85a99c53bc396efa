def add(a, b)
  c = a + b
  c
end
p1 = { x: 1, y: [2, 3] }
s = add(p1[:x], p1[:y][0])
puts "sum #{s}"
exit 3
