/* A search that may find nothing, and a caller who does not ask. */
#include <stddef.h>

struct user { int id; int age; };

static struct user *find(struct user *users, int count, int id) {
  for (int i = 0; i < count; i++) {
    if (users[i].id == id) {
      return &users[i];
    }
  }
  return NULL; /* FAULT */
}

static int age_of(struct user *users, int count, int id) {
  struct user *found = find(users, count, id);
  return found->age;
}

int main(void) {
  struct user users[2] = {{1, 30}, {2, 40}};
  return age_of(users, 2, 3);
}
