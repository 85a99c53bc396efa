package main

import (
	"fmt"
	"os"
)

type point struct{ X, Y int }

func add(a, b int) int {
	c := a + b
	return c
}

func main() {
	p := point{1, 2}
	s := add(p.X, p.Y)
	fmt.Println("sum", s)
	os.Exit(3)
}
