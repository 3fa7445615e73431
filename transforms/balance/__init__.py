"""Balance: caps on rows that share a cluster, operators or a package. Only `pipeline.graph` loads it."""
