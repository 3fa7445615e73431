"""Detection of what a candidate leaves behind or hides: state between calls, caught exceptions, global settings."""
