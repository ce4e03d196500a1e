"""JMESPath with bounded cost, in this process or in a killable child process."""
