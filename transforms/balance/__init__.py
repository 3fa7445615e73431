"""Balance: caps on modules that share a cluster, operators or a package. Only `pipeline.graph` loads it."""
