"""In place of pytorch_lightning."""

import inspect

from torch import nn


class AttributeDict(dict):
    """A dictionary whose values are attributes too."""

    def __getattr__(self, key):
        if key not in self:
            raise AttributeError(key)
        return self[key]

    def __setattr__(self, key, value):
        self[key] = value


class LightningModule(nn.Module):
    """A module without what trains it."""

    @property
    def device(self):
        return next(self.parameters()).device

    def save_hyperparameters(self, *args, **kwargs):
        """Keep the arguments of the constructor that calls this as `self.hparams`."""
        values = inspect.currentframe().f_back.f_locals
        self.hparams = AttributeDict(
            {name: value for name, value in values.items() if name not in ("self", "__class__")}
        )

    def log(self, *args, **kwargs):
        """Nothing is logged."""

    def log_dict(self, *args, **kwargs):
        """Nothing is logged."""
