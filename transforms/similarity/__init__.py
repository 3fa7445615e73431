"""Forms of a source under which copies are equal or near: used to deduplicate, decontaminate and distill."""
