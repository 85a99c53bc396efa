/* An average over nothing, for the filter is the wrong way round. */
static int count_valid(const int *readings, int count) {
  int valid = 0;
  for (int i = 0; i < count; i++) {
    if (readings[i] < 0) { /* FAULT */
      valid++;
    }
  }
  return valid;
}

static int average(const int *readings, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    sum += readings[i];
  }
  int valid = count_valid(readings, count);
  return sum / valid;
}

int main(void) {
  int readings[3] = {2, 4, 6};
  return average(readings, 3);
}
