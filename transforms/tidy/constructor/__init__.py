"""Reduce the reference's constructor to the part that `ModelNew` needs."""
