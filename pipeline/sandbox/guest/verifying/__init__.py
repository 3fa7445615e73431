"""What the guests that verify share: a module under test, the interpreter of its kernels, the compile-only driver."""
