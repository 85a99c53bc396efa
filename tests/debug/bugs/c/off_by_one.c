/* A loop that ends one too early. */
#include <assert.h>

static int total(const int *prices, int count) {
  int sum = 0;
  for (int i = 0; i < count - 1; i++) { /* FAULT */
    sum += prices[i];
  }
  return sum;
}

int main(void) {
  int prices[3] = {5, 7, 11};
  assert(total(prices, 3) == 23);
  return 0;
}
