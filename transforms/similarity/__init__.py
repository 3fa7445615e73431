"""Forms of a source under which copies are equal or near: used to deduplicate, to decontaminate and to screen."""
