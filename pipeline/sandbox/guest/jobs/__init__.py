"""One module a kind of job: `run(request, tensors)` is what a guest does. Imports every other room of `guest`."""
