"""Tools for syntax trees that know nothing of Inductor: copy, integer algebra, and printing."""
