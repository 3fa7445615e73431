"""Helpers that several kinds of guests share. Imports no other room of `guest`."""
