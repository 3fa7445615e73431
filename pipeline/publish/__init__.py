"""Publishing a dataset folder: gates, the upload to the Hub, pull requests and withdrawals. Imported by `cli` alone."""
