#include <stdio.h>
struct point { int x; int y; };
int add(int a, int b) {
  int c = a + b;
  return c;
}
int main(void) {
  struct point p = {1, 2};
  int s = add(p.x, p.y);
  printf("sum %d\n", s);
  return 3;
}
