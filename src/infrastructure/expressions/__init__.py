"""JMESPath of bounded cost, in this process or in one that can be killed."""
