# Prints FILE:LINE:TEXT of every line with an open point. `grep` without a match is a success here.
grep -nH '???' "$@" || test $? -eq 1
