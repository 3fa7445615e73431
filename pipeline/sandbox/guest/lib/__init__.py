"""Helpers of all guest jobs. They import no other room of `guest`."""
