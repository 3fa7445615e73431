"""The untrusted side: code that runs in guest processes. The host never imports it; it imports only what
`process/bootstrap.py` allows.
"""
