"""What the tests of agents share."""

# Projects whose tests fail on purpose, for agents to mend.
collect_ignore = ["projects"]
