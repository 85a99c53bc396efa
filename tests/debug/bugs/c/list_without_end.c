/* A list whose last node leads nowhere good. */
#include <stddef.h>

struct node { int value; struct node *next; };

static void append(struct node *last, struct node *added) {
  last->next = added;
  added->next = (struct node *)8; /* FAULT */
}

static int sum(struct node *node) {
  int result = 0;
  while (node != NULL) {
    result += node->value;
    node = node->next;
  }
  return result;
}

int main(void) {
  struct node first = {1, NULL};
  struct node second = {2, NULL};
  append(&first, &second);
  return sum(&first);
}
