"""A table of one teacher, as a user would write it."""

TABLE = """
repairs = 1

[limits]
usd = 1.0
tokens = 1_000_000

[retries]
tries = 2
first_wait_s = 0.01

[terms.open]
training = "permits"
source = "Apache-2.0"
read_on = "2026-11-01"

[[teachers]]
name = "scripted"
model = "scripted"
url = "{url}"
kind = "own"
terms = "open"
usd_per_million_input = 1.0
usd_per_million_output = 2.0
batch_price = 0.5
routes = ["refine"]
samples = 1
max_tokens = 2000
"""
