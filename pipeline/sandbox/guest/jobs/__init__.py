"""Guest jobs: `run(request, tensors)` of each module returns a reply and tensors. They import all other rooms."""
